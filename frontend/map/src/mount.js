// One map per element of the page, for as long as the element is there: what the server sends goes to the last one.

const hub = (window.headscopeMap ??= {});
const instances = new WeakMap();
const GONE = 500; // milliseconds until an element that is not in the page is taken for gone

export function mount(parentElement, make) {
  const instance = instances.get(parentElement) ?? make();
  instances.set(parentElement, instance);
  instance.listener ??= (message) => instance.receive(message);
  hub.listener = instance.listener;
  if (hub.latest && hub.latest !== instance.message) instance.receive(hub.latest);
  return () => {
    // Called on every rerun as well: only an element that is gone takes its drawing with it.
    setTimeout(() => {
      if (instance.root.isConnected || instances.get(parentElement) !== instance) return;
      instance.destroy();
      instances.delete(parentElement);
      if (hub.listener === instance.listener) hub.listener = null;
    }, GONE);
  };
}
