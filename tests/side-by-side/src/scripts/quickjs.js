(function (input) {
  const { text } = JSON.parse(input);
  return JSON.stringify({ words: text.split(/\s+/).filter(Boolean).length });
})
