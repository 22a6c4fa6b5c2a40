import json, sys

def result(method, params):
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "words", "version": "1"},
        }
    words = len(params["arguments"]["text"].split())
    return {"content": [{"type": "text", "text": json.dumps({"words": words})}]}

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        answer = result(message["method"], message.get("params"))
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer}), flush=True)
