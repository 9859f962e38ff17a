// A button that copies the address: a view is a link. The map and the heat map change the address without the server,
// so it is read when the button is pressed, never before.

export default function copyLink({ parentElement }) {
  const button = parentElement.querySelector("button");
  button.onclick = async () => {
    const done = await copied(window.location.href);
    button.textContent = done ? "Copied" : "Copy it from the address bar";
    clearTimeout(button.later);
    button.later = setTimeout(() => { button.textContent = "Copy link to this view"; }, 2500);
  };
  button.disabled = false; // until now a press would have been lost
}

// Whether the reader's last gesture was a key: results that open beside a picture take the focus only then. It is here
// because this script is on every page from the start, and such a panel comes after the gesture.
window.headscopeInput ??= watchInput();

function watchInput() {
  const last = { keys: false };
  window.addEventListener("keydown", () => { last.keys = true; }, true);
  window.addEventListener("pointerdown", () => { last.keys = false; }, true);
  return last;
}
