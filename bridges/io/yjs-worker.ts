/** Runs in the threads of `yjs-threads.ts`. */

import { factsOf } from "../update-facts.ts";
import { mergeContent, openContent } from "../yjs-work.ts";

export const check = factsOf;
export const merge = mergeContent;
export const open = openContent;
