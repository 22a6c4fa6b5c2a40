const words = (text) => text.split(/\s+/).filter(Boolean).length;

function result(method, params) {
  if (method === "initialize") {
    return {
      protocolVersion: params.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: "words", version: "1" },
    };
  }
  const text = JSON.stringify({ words: words(params.arguments.text) });
  return { content: [{ type: "text", text }] };
}

let rest = "";
process.stdin.setEncoding("utf8").on("data", (data) => {
  const lines = (rest + data).split("\n");
  rest = lines.pop();
  for (const line of lines) {
    const { id, method, params } = JSON.parse(line);
    if (id !== undefined) {
      const answer = { jsonrpc: "2.0", id, result: result(method, params) };
      process.stdout.write(JSON.stringify(answer) + "\n");
    }
  }
});
