// The address that somebody asked for before the login, which ends at the first page. It stays in this tab's own storage,
// is written by nobody but this file, and only a path of this very server is gone to.

const KEY = "headscope: asked for";

export default function askedFor({ data }) {
  const here = window.location.pathname + window.location.search;
  if (data.before) {
    window.sessionStorage.setItem(KEY, here);
    return;
  }
  const asked = window.sessionStorage.getItem(KEY);
  window.sessionStorage.removeItem(KEY);
  if (!asked || asked === here) return;
  const goal = new URL(asked, window.location.origin);
  if (goal.origin === window.location.origin) window.location.replace(goal.href); // whole: a path alone may begin with two slashes
}
