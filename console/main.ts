/** The demo page, wired: one shared document, who writes in it, and whether it is stored. */

import * as Y from "yjs";

import { parseAddress, searchOf } from "./address.ts";
import { Authors, writerOf } from "./authors.ts";
import { demoToken } from "./io/demo-token.ts";
import { openEditor } from "./io/editor.ts";
import { element } from "./io/element.ts";
import { freshInk } from "./io/fresh-ink.ts";
import { nameView } from "./io/name-view.ts";
import { noticeView } from "./io/notice-view.ts";
import { peopleView } from "./io/people-view.ts";
import { copyText, shareView } from "./io/share-view.ts";
import { openSharedDocument } from "./io/shared-document.ts";
import { statusView } from "./io/status-view.ts";
import { colourOf, friendlyName } from "./person.ts";
import { noticeFor } from "./status.ts";

const { room, name: user = friendlyName(Math.random()), rights } = parseAddress(location.search);
const doc = new Y.Doc();
const text = doc.getText("text");
const authors = new Authors(doc);
let self = user;
let loaded = false;
let latestWriter: number | undefined;

const takeName = (name: string): void => {
  self = name;
  history.replaceState(null, "", searchOf({ room, name, rights }));
};
takeName(user);
document.title = `${room} · Coroom`;
element("room", HTMLElement).textContent = room;

const showPeople = peopleView();
const latest = (): string | undefined => (latestWriter === undefined ? undefined : authors.nameOf(latestWriter));
const peopleChanged = (): void => showPeople({ names: authors.names(), self, latest: latest() });
authors.observe(peopleChanged);
nameView(user, (name) => {
  takeName(name);
  authors.rename(name);
  peopleChanged();
});

// Registered before the editor's own observer, so that the ink knows its writer.
text.observe((_, transaction) => {
  const writer = writerOf(transaction);
  if (writer === doc.clientID) authors.introduce(self);
  if (!loaded || writer === undefined || writer === latestWriter) return;
  latestWriter = writer;
  peopleChanged();
});
const inkColour = (): number | undefined => {
  const name = latestWriter === doc.clientID ? undefined : latest();
  return name === undefined ? undefined : colourOf(name);
};
const editor = openEditor(element("document", HTMLElement), text, freshInk(inkColour));

const showStatus = statusView();
const showNotice = noticeView(async (action) => {
  if (action === "reload") location.reload();
  else if (!(await copyText(text.toString()))) editor.selectAll();
});
openSharedDocument({ room, doc, token: () => demoToken({ room, user, name: self, rights }) }, (facts) => {
  showStatus(facts);
  showNotice(noticeFor(facts));
  editor.setWritable(facts.loaded && facts.mayWrite && facts.status !== "stopped");
  if (facts.loaded && !loaded) editor.focus();
  loaded = facts.loaded;
});

const page = (name?: string): string => new URL(searchOf({ room, name }), location.href).href;
const known = new Set([user]);
const secondPerson = (): string => {
  const name = friendlyName(Math.random(), new Set([...known, ...authors.names()]));
  known.add(name);
  return page(name);
};
shareView({ toSend: page(), secondPerson });
