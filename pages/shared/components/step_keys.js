// The left and right arrow keys count a number down and up, round and round. The number is counted here, at once, and
// sent as it is: two presses that reach the server together are two all the same, whichever of them it looks at.

// By name, not by element: Streamlit may replace the element while keys are pressed.
const counters = (window.headscopeSteps ??= new Map());
const TAKEN = "input, textarea, select, [contenteditable], [role=application], [role=combobox], [role=grid], [role=listbox], " +
  "[role=menu], [role=radio], [role=radiogroup], [role=slider], [role=tab], [role=textbox], [role=treegrid]"; // have arrow keys of their own
const STEPS = { ArrowLeft: -1, ArrowRight: 1 };

export default function stepKeys({ data, parentElement, setTriggerValue }) {
  let counter = counters.get(data.name);
  if (!counter) counters.set(data.name, (counter = { press: data.press, number: data.number }));
  counter.element = parentElement;
  counter.count = data.count;
  counter.send = () => setTriggerValue("pressed", { number: counter.number, press: counter.press });
  // An answer to an earlier press must not take later ones back.
  if (data.press >= counter.press) [counter.press, counter.number] = [data.press, data.number];
  else if (counter.unsent) counter.send(); // pressed while the element was replaced
  counter.unsent = false;
  if (!counter.listener) {
    counter.listener = (event) => press(event, counter);
    window.addEventListener("keydown", counter.listener);
  }
  parentElement.querySelector(".step-keys").dataset.listening = ""; // for whoever drives the page
  return () => {
    // Called on every rerun as well: only an element that is gone, and not replaced, stops listening.
    setTimeout(() => {
      if (counter.element.isConnected) return;
      window.removeEventListener("keydown", counter.listener);
      if (counters.get(data.name) === counter) counters.delete(data.name);
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
  if (counter.element.isConnected) counter.send();
  else counter.unsent = true;
}
