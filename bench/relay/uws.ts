/** The uWebSockets.js that loads here: one build is for Node 18 to 23 and older systems, the other for Node 22 and newer. */
export function loadUws(): Promise<typeof import("uws-node20")> {
  return import("uws-node22").catch(() => import("uws-node20"));
}
