// What `judgekit view` serves: the head of the page, and news of changes.

const page = location.pathname.replace(/\/$/, "");

async function fetched(path, sent) {
  const headers = { "content-type": "application/json", "x-judgekit-token": document.documentElement.dataset.token };
  const reply = await fetch(path, sent === undefined ? {} : { method: "POST", headers, body: JSON.stringify(sent) });
  if (reply.status === 403) throw new Error("This page belongs to a server that has ended: open the address that judgekit view prints.");
  const content = await reply.json();
  if (!reply.ok) throw new Error(content.error);
  return content;
}

/** Returns the head of the page; when it opens, that of a long run comes without what takes a pass over all scores. */
async function headOf() {
  const content = await fetched(report.head || page.includes("/compare/") ? `${page}.json` : `${page}/head.json`);
  const head = content.first ? firstHead(content) : content;
  for (const kind of ["audit", "failures"]) document.querySelector(`#top nav a[href="#/${kind}"]`).hidden = !head[kind];
  return head;
}

/** Shows a page that is read at once and whenever the file of runs has changed. */
function keepShown(update) {
  const failed = (error) => {
    document.getElementById("lead").replaceChildren(el("span", { class: "note" }, visible(error.message)));
    document.documentElement.dataset.ready = "failed";
  };
  document.getElementById("theme").addEventListener("click", () => {
    const root = document.documentElement.style;
    const dark = root.colorScheme ? root.colorScheme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.colorScheme = dark ? "light" : "dark";
  });
  follow(() => update().catch(failed));
  update().catch(failed);
}

/** Calls a function whenever the file of runs has changed: by events, or by a poll where they are cut. */
function follow(changed) {
  let last = null;
  let busy = false;
  let again = false;
  const update = async () => {
    again = true;
    if (busy) return;
    busy = true;
    while (again) {
      again = false;
      const began = performance.now();
      await Promise.resolve(changed()).catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, 2 * (performance.now() - began)));
    }
    busy = false;
  };
  const take = (version) => {
    if (last !== null && version !== last) update();
    last = version;
  };
  const events = new EventSource("/events");
  events.addEventListener("message", (event) => take(event.data));
  setInterval(async () => {
    if (events.readyState !== EventSource.OPEN) take((await fetched("/version.json")).version);
  }, 5000);
}
