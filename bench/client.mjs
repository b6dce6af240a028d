// The official TypeScript client calls every tool of a server: node client.mjs ADDRESS TOKEN ARGUMENTS-OF-TOOLS
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [address, token, said] = process.argv.slice(2);
const known = JSON.parse(said);
const client = new Client({ name: "bench", version: "1" });
const headers = { Authorization: `Bearer ${token}` };
await client.connect(new StreamableHTTPClientTransport(new URL(address), { requestInit: { headers } }));
const { tools } = await client.listTools();
const destroys = (tool) => (tool.annotations.destructiveHint ? 1 : 0);
let failed = 0;
for (const tool of tools.sort((one, other) => destroys(one) - destroys(other))) {
  const given = Object.entries(known[tool.name] ?? {}).filter(([key]) => key in tool.inputSchema.properties);
  const answer = await client.callTool({ name: tool.name, arguments: Object.fromEntries(given) });
  // What one tool deleted, the next may not find; and one asks another server.
  if (!answer.content.length || (answer.isError && !destroys(tool) && tool.name !== "ingest_url")) {
    failed += 1;
    console.error(tool.name, JSON.stringify(answer.content));
  }
}
await client.close();
console.log(`${tools.length} tools called`);
process.exit(failed ? 1 : 0);
