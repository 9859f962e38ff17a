// Elements by function calls; text is always text, never HTML: titles, topics and columns are untrusted.

export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children) if (child !== null) made.append(child);
  return made;
}

export function button(text, title, onclick, extra = {}) {
  return element("button", { type: "button", title, onclick, ...extra }, text);
}

export function svgElement(tag, attributes = {}, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, typeof value === "number" ? String(Math.round(value * 10) / 10) : value);
  made.textContent = text;
  return made;
}
