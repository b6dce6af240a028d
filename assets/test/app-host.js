// The official host of MCP Apps, for a test in a browser: it shows an app in a frame, sends it the
// result of a tool, and passes its calls of tools on to `window.passOn`.
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

window.showApp = async (html, result) => {
  const frame = document.createElement("iframe");
  frame.sandbox = "allow-scripts";
  frame.srcdoc = html;
  document.body.replaceChildren(frame);

  const bridge = new AppBridge(
    null,
    { name: "host", version: "1" },
    { serverTools: {} },
    { hostContext: { theme: "dark" } },
  );
  bridge.oncalltool = (params) => window.passOn(params.name, params.arguments);
  bridge.oninitialized = () => bridge.sendToolResult(result);
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
};
