const { text } = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify({ words: text.split(/\s+/).filter(Boolean).length }));
