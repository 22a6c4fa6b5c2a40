import json, sys

arguments = json.load(sys.stdin)
print(json.dumps({"words": len(arguments["text"].split())}))
