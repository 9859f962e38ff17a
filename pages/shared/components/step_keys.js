// The left and right arrow keys count a number down and up, round and round. The number is counted here, at once, and
// sent as it is: two presses that reach the server together are two all the same, whichever of them it looks at.

const own = new WeakMap(); // one counter an element
const TAKEN = "input, textarea, select, [contenteditable], [role=application], [role=combobox], [role=grid], [role=listbox], " +
  "[role=menu], [role=radio], [role=radiogroup], [role=slider], [role=tab], [role=textbox], [role=treegrid]"; // have arrow keys of their own
const STEPS = { ArrowLeft: -1, ArrowRight: 1 };

export default function stepKeys({ data, parentElement, setTriggerValue }) {
  let counter = own.get(parentElement);
  if (!counter) own.set(parentElement, (counter = { press: data.press, number: data.number }));
  counter.count = data.count;
  counter.send = (pressed) => setTriggerValue("pressed", pressed);
  // An answer to an earlier press must not take later ones back.
  if (data.press >= counter.press) [counter.press, counter.number] = [data.press, data.number];
  if (!counter.listener) {
    counter.listener = (event) => parentElement.isConnected && press(event, counter);
    window.addEventListener("keydown", counter.listener);
    parentElement.querySelector(".step-keys").dataset.listening = ""; // for whoever drives the page
  }
  return () => {
    // Called on every rerun as well: only an element that is gone stops listening.
    setTimeout(() => {
      if (parentElement.isConnected) return;
      window.removeEventListener("keydown", counter.listener);
      counter.listener = null;
    }, 500);
  };
}

function press(event, counter) {
  const step = STEPS[event.key];
  // A key that is held is one press: nobody can see heads go by as fast as keys repeat.
  if (!step || event.repeat || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  if (event.composedPath().some((node) => node.matches?.(TAKEN))) return;
  event.preventDefault();
  counter.number = ((counter.number - 1 + step + counter.count) % counter.count) + 1;
  counter.press += 1;
  counter.send({ number: counter.number, press: counter.press });
}
