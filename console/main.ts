/** Entry point of the demo page: one shared document as text and canvas, the people in it, and its saving state. */

import * as Y from "yjs";

import { parseAddress, personIn, searchOf, type StoredPerson } from "./address.ts";
import { boardView } from "./io/board-view.ts";
import { Canvas } from "./io/canvas.ts";
import { peopleIn } from "./io/room-people.ts";
import { deskView } from "./io/desk-view.ts";
import { openEditor } from "./io/editor.ts";
import { element } from "./io/element.ts";
import { recentTextHighlight } from "./io/recent-text-highlight.ts";
import { noticeView } from "./io/notice-view.ts";
import { peopleView, nameView } from "./io/people-view.ts";
import { copyText, shareView, botsView } from "./io/share-view.ts";
import { openSharedDocument, watchFacts, demoToken } from "./io/shared-document.ts";
import { statusView, presenceView } from "./io/status-view.ts";
import { LatestWriter } from "./latest-writer.ts";
import { caretOf, colourOf, newPerson } from "./person.ts";
import { noticeFor } from "./status.ts";

const { room, name: asked, rights } = parseAddress(location.search);
const { user, name: first } = personIn(history.state) ?? newPerson(asked, Math.random());
const asksToWrite = rights !== "read";
const doc = new Y.Doc();
const text = doc.getText("text");
let self = first;
let loaded = false;
document.title = `${room} · Coroom`;
element("room", HTMLElement).textContent = room;

const provider = openSharedDocument({ room, doc, token: () => demoToken({ room, user, name: self, rights }), asksToWrite });
const roomPeople = peopleIn(provider);
const takeName = (name: string): void => {
  self = name;
  history.replaceState({ user, name } satisfies StoredPerson, "", searchOf({ room, rights }));
  provider.awareness.setLocalStateField("user", caretOf(name));
};
takeName(first);
nameView(first, takeName);

// Create it before the editor's own observer, so that new text knows its writer.
const latest = new LatestWriter(text, provider.awareness);
const showPeople = peopleView();
const peopleChanged = (): void => showPeople({ people: roomPeople.people.values(), latest: latest.name });
roomPeople.onRoster(peopleChanged);
latest.onChange(peopleChanged);

const inkColour = (): number | undefined => (latest.isSelf || latest.name === undefined ? undefined : colourOf(latest.name));
const editor = openEditor(element("document", HTMLElement), text, provider.awareness, recentTextHighlight(inkColour));
const canvas = new Canvas(provider, roomPeople, () => colourOf(self));
deskView();
presenceView(provider);
boardView(provider, user);
botsView(room);

const showStatus = statusView();
const showNotice = noticeView(async (action) => {
  if (action === "reload") return void location.reload();
  if (await copyText(text.toString())) return "Copied";
  editor.selectAll();
  return "Press Ctrl+C";
});
watchFacts(provider, asksToWrite, (facts) => {
  showStatus(facts);
  showNotice(noticeFor(facts));
  const writable = facts.loaded && facts.mayWrite && facts.status !== "stopped";
  editor.setWritable(writable);
  canvas.setWritable(writable);
  if (facts.loaded && !loaded) {
    latest.beginNow();
    canvas.open();
    editor.focus();
  }
  loaded = facts.loaded;
});

shareView(room, first, () => [...roomPeople.people.values()].map(({ name }) => name));
