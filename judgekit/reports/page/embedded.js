// What is embedded in the page: its head at once, and packs of samples, which the end of the file has.

const loaded = new Promise((resolve) => {
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", resolve);
  else resolve();
});

async function unpacked(id) {
  if (!document.getElementById(id)) await loaded;
  if (!document.getElementById(id)) throw new Error("This file is incomplete: its end is missing.");
  const packed = atob(document.getElementById(id).textContent);
  const bytes = new Uint8Array(packed.length);
  for (let at = 0; at < packed.length; at++) bytes[at] = packed.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

/** Returns the head of the page, which opens at the audit if it has one. */
async function headOf() {
  const head = JSON.parse(document.getElementById("head").textContent);
  if (head.audit && !location.hash) history.replaceState(null, "", "#/audit");
  return head;
}

/** Resolves when the texts of the next samples are wanted: here all are read, for searches. */
const untilWanted = () => new Promise((resolve) => setTimeout(resolve));
