/** A room of Coroom for the life of a component: joined at once, and left when the component is unmounted. */

import { CoroomProvider } from "@coroom/client";
import { onScopeDispose, ref, shallowRef } from "vue";
import * as Y from "yjs";

/** `doc` and `provider` stay outside of `ref` and `reactive`: Vue's proxies of them do not work. */
export function useRoom(options) {
  const doc = new Y.Doc();
  const provider = new CoroomProvider({ ...options, doc });
  const status = ref(provider.status);
  const saved = ref(provider.saved);
  const participants = shallowRef([]);
  provider.on("status", (change) => (status.value = change.status));
  provider.on("saved", (isSaved) => (saved.value = isSaved));
  provider.on("participants", (all) => (participants.value = [...all.values()]));
  onScopeDispose(() => doc.destroy()); // This destroys the provider too, and ends its connection.
  return { doc, provider, status, saved, participants };
}
