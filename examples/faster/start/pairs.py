"""Counts the pairs of numbers that add up to a target: the target and the numbers come on standard input."""

import sys


def pairs(target, numbers):
    found = 0
    for i in range(len(numbers)):
        for j in range(i + 1, len(numbers)):
            if numbers[i] + numbers[j] == target:
                found += 1
    return found


target, *numbers = map(int, sys.stdin.read().split())
print(pairs(target, numbers))
