/** Yjs work for tests, in the same thread and at once. */

import type { YjsWork } from "../ports.ts";
import { factsOf } from "../update-facts.ts";
import { mergeContent, openContent } from "../yjs-work.ts";

export const synchronousYjsWork: YjsWork = {
  check: (update, receive) => receive(factsOf(update)),
  merge: (question, receive) => receive(mergeContent(question)),
  open: (content, receive) => receive(openContent(content)),
};
