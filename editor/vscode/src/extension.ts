// The client: starts `crucible lsp`, starts it again when it is told to, and shows the graph that it draws.

import * as vscode from "vscode";
import { ExecuteCommandRequest, LanguageClient } from "vscode-languageclient/node";

const LANGUAGE = "crucible-workflow";
const SETTING = "crucible.command";
const GRAPH = "crucible.graph"; // the server's own command; the client library registers it under that name

let client: LanguageClient | undefined;
let last: Promise<void> = Promise.resolve();

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  context.subscriptions.push(
    vscode.commands.registerCommand("crucible.restart", restart),
    vscode.commands.registerCommand("crucible.showGraph", showGraph),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration(SETTING)) {
        void restart();
      }
    }),
  );
  await restart();
}

export async function deactivate(): Promise<void> {
  await after(stop);
}

function restart(): Promise<void> {
  return after(async () => {
    await stop();
    await start();
  });
}

/** Run one thing behind what is still running, so that two servers never start side by side. */
function after(act: () => Promise<void>): Promise<void> {
  last = last.then(act, act);
  return last;
}

async function start(): Promise<void> {
  const command = vscode.workspace.getConfiguration().get<string>(SETTING)?.trim() || "crucible";
  const started = new LanguageClient(
    "crucible",
    "Crucible",
    { command, args: ["lsp"] },
    {
      documentSelector: [
        { scheme: "file", language: LANGUAGE },
        { scheme: "file", pattern: "**/crucible.toml" },
      ],
    },
  );
  client = started;
  try {
    await started.start();
  } catch (error) {
    const settings = "Open the setting";
    void vscode.window.showErrorMessage(`"${command} lsp" did not start: ${reasonOf(error)}`, settings).then((chosen) => {
      if (chosen === settings) {
        void vscode.commands.executeCommand("workbench.action.openSettings", SETTING);
      }
    });
  }
}

async function stop(): Promise<void> {
  const stopped = client;
  client = undefined;
  try {
    await stopped?.dispose();
  } catch {
    // It never ran, or is gone already.
  }
}

async function showGraph(): Promise<void> {
  const document = vscode.window.activeTextEditor?.document;
  if (document?.languageId !== LANGUAGE || !client?.isRunning()) {
    void vscode.window.showWarningMessage("Open a workflow.star first; the language server must be running.");
    return;
  }
  const parameters = { command: GRAPH, arguments: [document.uri.toString()] };
  let svg: unknown;
  try {
    svg = await client.sendRequest(ExecuteCommandRequest.type, parameters);
  } catch (error) {
    void vscode.window.showErrorMessage(`There is no graph: ${reasonOf(error)}`);
    return;
  }
  if (typeof svg !== "string") {
    void vscode.window.showWarningMessage("There is no graph: the workflow has mistakes.");
    return;
  }
  const name = vscode.workspace.asRelativePath(document.uri);
  const panel = vscode.window.createWebviewPanel("crucible.graph", name, vscode.ViewColumn.Beside);
  panel.webview.html = page(svg);
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A page that holds the drawing and may load and run nothing. */
function page(svg: string): string {
  return `<!DOCTYPE html>
<html>
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>body { background: white; } svg { max-width: 100%; height: auto; }</style>
</head>
<body>${svg.slice(Math.max(0, svg.indexOf("<svg")))}</body>
</html>`;
}
