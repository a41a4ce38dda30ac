/** The demo page, wired: one shared document as text and canvas, who is here, and whether it is stored. */

import * as Y from "yjs";

import { parseAddress, searchOf, userIn } from "./address.ts";
import { boardView } from "./io/board-view.ts";
import { botsView } from "./io/bots-view.ts";
import { Canvas } from "./io/canvas.ts";
import { crowdOf } from "./io/crowd.ts";
import { demoToken } from "./io/demo-token.ts";
import { deskView } from "./io/desk-view.ts";
import { openEditor } from "./io/editor.ts";
import { element } from "./io/element.ts";
import { freshInk } from "./io/fresh-ink.ts";
import { nameView } from "./io/name-view.ts";
import { noticeView } from "./io/notice-view.ts";
import { peopleView } from "./io/people-view.ts";
import { roomView } from "./io/room-view.ts";
import { copyText, shareView } from "./io/share-view.ts";
import { openSharedDocument, watchFacts } from "./io/shared-document.ts";
import { statusView } from "./io/status-view.ts";
import { LatestWriter } from "./latest-writer.ts";
import { caretOf, colourOf, friendlyName } from "./person.ts";
import { noticeFor } from "./status.ts";

const { room, name: first = friendlyName(Math.random()), rights } = parseAddress(location.search);
const user = userIn(history.state) ?? first;
const asksToWrite = rights !== "read";
const doc = new Y.Doc();
const text = doc.getText("text");
let self = first;
let loaded = false;
document.title = `${room} · Coroom`;
element("room", HTMLElement).textContent = room;

const provider = openSharedDocument({ room, doc, token: () => demoToken({ room, user, name: self, rights }), asksToWrite });
const crowd = crowdOf(provider);
const takeName = (name: string): void => {
  self = name;
  history.replaceState({ user }, "", searchOf({ room, name, rights }));
  provider.awareness.setLocalStateField("user", caretOf(name));
};
takeName(first);
nameView(first, takeName);

// Before the editor's own observer, so that the ink knows its writer.
const latest = new LatestWriter(text, provider.awareness);
const showPeople = peopleView();
const peopleChanged = (): void => showPeople({ people: crowd.people.values(), latest: latest.name });
crowd.onRoster(peopleChanged);
latest.onChange(peopleChanged);

const inkColour = (): number | undefined => (latest.isSelf || latest.name === undefined ? undefined : colourOf(latest.name));
const editor = openEditor(element("document", HTMLElement), text, provider.awareness, freshInk(inkColour));
const canvas = new Canvas(provider, crowd, () => colourOf(self));
deskView();
roomView(provider);
boardView(provider, user);
botsView(room);

const showStatus = statusView();
const showNotice = noticeView(async (action) => {
  if (action === "reload") location.reload();
  else if (!(await copyText(text.toString()))) editor.selectAll();
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

shareView(room, first, () => [...crowd.people.values()].map(({ name }) => name));
