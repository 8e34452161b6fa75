// The log of a rank: read as it is written, into a <pre> that follows its end unless the reader scrolled up.

const MOST_CHARS = 2_000_000; // what a page keeps; older lines go
let form = null;
let reading = null;

function isAtEnd(box) {
  return box.scrollHeight - box.scrollTop - box.clientHeight < 24;
}

function append(box, text) {
  const stays = !isAtEnd(box);
  box.append(text);
  if (box.textContent.length > MOST_CHARS) box.textContent = box.textContent.slice(-MOST_CHARS / 2);
  if (!stays) box.scrollTop = box.scrollHeight;
}

function say(name, text = "") {
  const status = form.querySelector("[data-log-status]");
  status.textContent = text || status.dataset[name];
}

async function read() {
  reading?.abort();
  reading = new AbortController();
  const { signal } = reading;
  const box = document.getElementById(form.dataset.logTarget);
  const query = new URLSearchParams(new FormData(form));
  query.delete("tab");
  box.textContent = "";
  say("waiting");
  try {
    const answer = await fetch(`${form.dataset.log}?${query}`, { signal, credentials: "same-origin" });
    if (!answer.ok) {
      const problem = await answer.json().catch(() => ({}));
      say("failed", problem.detail);
      return;
    }
    say(query.has("follow") ? "following" : "waiting");
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) append(box, part.value);
    say("ended");
  } catch (error) {
    if (error.name !== "AbortError") say("failed");
  }
}

// The form comes with the page, or later, with the first pods.
function begin() {
  const found = document.querySelector("form[data-log]");
  if (!found || found === form) return;
  form = found;
  form.addEventListener("change", read);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    read();
  });
  read();
}

addEventListener("pagehide", () => reading?.abort());
document.addEventListener("muster:patched", begin);
begin();
