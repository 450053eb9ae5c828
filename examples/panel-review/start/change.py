"""The change under review."""


def parse(line):
    try:
        key, value = line.split("=")
    except:
        return None
    return {key: eval(value)}
