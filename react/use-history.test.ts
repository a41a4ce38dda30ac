// @vitest-environment happy-dom
/** The hook `useHistory` with answers of the test. */

import { createElement as h, type ReactNode } from "react";
import { expect, onTestFinished, test, vi } from "vitest";

import { eventually } from "../test/system/eventually.ts";
import { CoroomProvider, useHistory, useRoom } from "./index.ts";
import { endTimersWithFile, MountedTree } from "./testing/served-rooms.ts";

endTimersWithFile();

test("[HOOK24] requests go to the server's address, without its query", async () => {
  const requested: string[] = [];
  vi.stubGlobal("fetch", (url: string) => new Promise(() => requested.push(url)));
  onTestFinished(() => void vi.unstubAllGlobals());
  const History = (): ReactNode => useHistory(useRoom("notes")).state;
  const tree = new MountedTree(h(CoroomProvider, { url: "ws://127.0.0.1:9/proxy/?tenant=a", token: "t" }, h(History)));
  onTestFinished(() => tree.unmount());
  await eventually("the versions are requested", () => requested.includes("http://127.0.0.1:9/proxy/v1/rooms/notes/versions"));
});

test("[HOOK12] a component that changes its room shows no version of the room before", async () => {
  const requests: { readonly url: string; readonly answer: (answer: Response) => void }[] = [];
  vi.stubGlobal("fetch", (url: string) => new Promise<Response>((answer) => requests.push({ url, answer })));
  onTestFinished(() => void vi.unstubAllGlobals());
  const shown: string[] = [];
  const History = ({ name }: { name: string }): ReactNode => {
    const { state, versions } = useHistory(useRoom(name));
    shown.push(`${name} ${state} ${versions.map(({ id }) => id).join()}`);
    return shown.at(-1);
  };
  const page = (name: string): ReactNode => h(CoroomProvider, { url: "ws://127.0.0.1:9", token: "t" }, h(History, { name }));
  const tree = new MountedTree(page("notes"));
  onTestFinished(() => tree.unmount());
  const answers = async (name: string, id: string): Promise<void> => {
    await eventually("the versions are requested", () => requests.some(({ url }) => url.endsWith(`/${name}/versions`)));
    const { answer } = requests.find(({ url }) => url.endsWith(`/${name}/versions`))!;
    answer(new Response(JSON.stringify({ versions: [{ id }], readableFrom: null })));
    await eventually("they are shown", () => tree.text === `${name} ready ${id}`);
  };
  await answers("notes", "one");
  tree.show(page("tasks"));
  await answers("tasks", "two");
  expect(shown.filter((text) => text.startsWith("tasks") && !text.includes("loading"))).toEqual(["tasks ready two"]);
});

test.each([
  {
    body: JSON.stringify({ error: "not-yet", message: "the newest seq of the room is 21" }),
    text: "HTTP 404: the newest seq of the room is 21",
  },
  { body: "<h1>The page of a proxy</h1>", text: "HTTP 404" },
  { body: "null", text: "HTTP 404" },
])("[HOOK23] an action that fails rejects with the server's message, if there is one: $text", async ({ body, text }) => {
  vi.stubGlobal("fetch", (url: string) =>
    Promise.resolve(url.includes("restore") ? new Response(body, { status: 404 }) : new Response('{"versions":[],"readableFrom":null}')),
  );
  onTestFinished(() => void vi.unstubAllGlobals());
  let restore: (seq: number) => Promise<void> = () => Promise.resolve();
  const History = (): ReactNode => {
    const { state, ...actions } = useHistory(useRoom("notes"));
    restore = actions.restore;
    return state;
  };
  const tree = new MountedTree(h(CoroomProvider, { url: "ws://127.0.0.1:9", token: "t" }, h(History)));
  onTestFinished(() => tree.unmount());
  await eventually("the versions are read", () => tree.text === "ready");
  await expect(restore(99)).rejects.toThrow(new Error(`POST restore?seq=99 failed with ${text}`));
});
