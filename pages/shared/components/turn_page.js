// Follows the link beside it, once for every press.

const followed = (window.headscopeTurned ??= { press: 0 });

export default function turnPage({ data, parentElement }) {
  if (data.press <= followed.press) return;
  followed.press = data.press;
  const host = parentElement.getRootNode().host ?? parentElement;
  host.closest(".st-key-page-to-turn-to").querySelector("a").click();
}
