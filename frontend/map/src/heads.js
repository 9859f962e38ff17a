// Chosen heads, counted from 1, and how they stand in the address: "1-4,7"; "none"; nothing at all for all of them.

export function parseHeads(text, heads) {
  const chosen = new Set();
  if (text === null || text === undefined) return allHeads(heads);
  if (text === "none") return chosen;
  for (const part of text.split(",")) {
    const match = /^(\d{1,4})(?:-(\d{1,4}))?$/.exec(part);
    if (!match) return allHeads(heads);
    const first = Number(match[1]);
    const last = Number(match[2] ?? match[1]);
    if (first < 1 || last > heads || first > last) return allHeads(heads);
    for (let head = first; head <= last; head += 1) chosen.add(head);
  }
  return chosen;
}

export function formatHeads(chosen, heads) {
  if (chosen.size === heads) return null;
  if (!chosen.size) return "none";
  const sorted = [...chosen].sort((a, b) => a - b);
  const parts = [];
  for (let i = 0; i < sorted.length; i += 1) {
    const first = sorted[i];
    while (sorted[i + 1] === sorted[i] + 1) i += 1;
    parts.push(sorted[i] === first ? `${first}` : `${first}-${sorted[i]}`);
  }
  return parts.join(",");
}

export function allHeads(heads) {
  return new Set(Array.from({ length: heads }, (_, i) => i + 1));
}
