import { afterEach, expect, test, vi } from "vitest";

import { demoToken } from "./shared-document.ts";

afterEach(() => vi.unstubAllGlobals());

test.each([
  [404, "{}", /this server makes none\. Start it with COROOM_DEMO on/],
  [502, "Bad gateway", /^cannot get a demo token: the server, or a proxy before it, answered with status 502$/],
  [200, "<!doctype html><title>Sign in</title>", /the answer contains none\. It may be the login page of a network or a proxy$/],
])("[DTK1] a demo token that does not arrive is explained: status %i, %j", async (status, body, why) => {
  vi.stubGlobal("fetch", () => Promise.resolve(new Response(body, { status })));
  await expect(demoToken({ room: "notes", user: "ann", name: "Ann", rights: undefined })).rejects.toThrow(why);
});
