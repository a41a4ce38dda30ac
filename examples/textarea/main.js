/** A plain textarea on a shared text, without an editor library. `?user=ada` sets the user. */

import { CoroomProvider } from "@coroom/client";
import * as Y from "yjs";

const search = new URLSearchParams(location.search);
const user = search.get("user") ?? `guest-${Math.floor(Math.random() * 1_000)}`;
const url = search.get("coroom") ?? "ws://127.0.0.1:8080";

const doc = new Y.Doc();
const text = doc.getText("textarea");
const provider = new CoroomProvider({ url, room: "notes-textarea", doc, token });
const undo = new Y.UndoManager(text, { trackedOrigins: new Set(["typing"]) }); // Only the user's own edits.

/** The client calls this again if it throws. */
async function token() {
  const response = await fetch(`/token?user=${encodeURIComponent(user)}`);
  if (!response.ok) throw new Error(`cannot get a token: HTTP ${response.status}`);
  return response.text();
}

const area = document.querySelector("textarea");

/** True in the middle of an emoji: 😀 and 😁 begin with the same half. Yjs makes unreadable characters of two halves. */
const isHalf = (string, index) => index > 0 && string.codePointAt(index - 1) > 0xffff;

/** A textarea shows "\r\n" and "\r" as "\n". Yjs counts "\r\n" as two characters, the area as one. */
const shown = (string) => string.replace(/\r\n?/g, "\n");
const indexInArea = (index) => shown(text.toString().slice(0, index)).length;
function indexInText(index) {
  const string = text.toString();
  let at = 0;
  for (; index > 0; index--) at += string.startsWith("\r\n", at) ? 2 : 1;
  return at;
}

/** The user's edit is what differs between the shared text and the area: one replaced part. */
area.addEventListener("input", () => {
  const [before, after] = [shown(text.toString()), area.value];
  const longest = Math.min(before.length, after.length);
  let start = 0;
  while (start < longest && before[start] === after[start]) start++;
  if (isHalf(before, start) || isHalf(after, start)) start--;
  let end = 0;
  while (end < longest - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  if (isHalf(before, before.length - end) || isHalf(after, after.length - end)) end--;
  const [from, to] = [indexInText(start), indexInText(before.length - end)];
  doc.transact(() => {
    text.delete(from, to - from);
    text.insert(from, after.slice(start, after.length - end));
  }, "typing");
  showCaret();
});

/** Shows the shared text, and keeps the selection at its characters. */
const placeAt = (index) => Y.createRelativePositionFromTypeIndex(text, indexInText(index));
const indexOf = (place) => indexInArea(Y.createAbsolutePositionFromRelativePosition(place, doc)?.index ?? 0);
let selection = [placeAt(0), placeAt(0)];
const keepSelection = () => (selection = [placeAt(area.selectionStart), placeAt(area.selectionEnd)]);
text.observe((_, { origin }) => {
  if (origin === "typing") return keepSelection();
  area.value = text.toString();
  area.setSelectionRange(indexOf(selection[0]), indexOf(selection[1]));
});

area.addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
  event.preventDefault();
  if (event.shiftKey) undo.redo();
  else undo.undo();
});

/** A textarea cannot draw the carets of others: the page lists their lines. */
const showCaret = () => {
  keepSelection();
  provider.awareness.setLocalStateField("line", area.value.slice(0, area.selectionStart).split("\n").length);
};
document.addEventListener("selectionchange", () => document.activeElement === area && showCaret());
provider.awareness.setLocalStateField("user", { name: user });
provider.awareness.on("change", () => {
  const others = [...provider.awareness.getStates()].filter(([client, { line }]) => client !== doc.clientID && line !== undefined);
  document.querySelector("#carets").textContent = others.map(([, { user, line }]) => `${user?.name} is in line ${line}`).join(", ");
});

const show = () => {
  document.querySelector("#here").textContent = [...provider.participants.values()].map(({ name }) => name).join(", ");
  document.querySelector("#status").textContent = provider.status !== "connected" ? provider.status : provider.saved ? "saved" : "saving…";
};
for (const event of ["participants", "status", "saved"]) provider.on(event, show);
