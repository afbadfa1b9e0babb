// The page of a run or a comparison that follows its run.

async function refresh() {
  if (!document.documentElement.dataset.ready) return;
  const head = await headOf();
  if (JSON.stringify(head) === JSON.stringify(report.head)) return;
  await read(head);
  readTexts().catch(() => {});
  found.key = null;
  report.choices = null;
  document.getElementById("all-samples").textContent = `Samples (${count(size())})`;
  if (here().view === "sample") return;
  const top = scrollY;
  await show();
  scrollTo(0, top);
}

follow(refresh);

/** Returns the controls by which people give an issue another status or name. */
report.edit = ({ id, name, status }) => {
  const problem = el("span", { role: "alert" });
  const set = (change) => fetched(`${page}/failures`, { issue: id, ...change }).then(refresh, (error) => (problem.textContent = visible(error.message)));
  const input = el("input", { type: "text", value: name, maxlength: 200, "aria-label": `name of issue ${id}`, onchange: (event) => set({ name: event.target.value }) });
  return el("p", { class: "filters" },
    el("label", { class: "filter" }, el("span", {}, "status"), el("select", { onchange: (event) => set({ status: event.target.value }) },
      ["open", "fixed", "rejected"].map((text) => el("option", { value: text, selected: text === status }, text)))),
    el("label", { class: "filter text" }, el("span", {}, "name"), input), problem);
};
