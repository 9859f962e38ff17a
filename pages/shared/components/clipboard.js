// Copying a text, for the components that offer it (mount.py puts it before their own script).

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copiedByHand(text); // a team's server without TLS: browsers have no clipboard there
  }
}

function copiedByHand(text) {
  const field = document.createElement("textarea");
  const before = document.activeElement;
  field.value = text;
  field.style.cssText = "position: fixed; opacity: 0";
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  before?.focus();
  return done;
}
