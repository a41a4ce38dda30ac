import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { expect, onTestFinished, test } from "vitest";

import type { RouteRequest } from "../../http/requests.ts";
import { pageRoutes } from "./static-files.ts";

/** A folder with these files, served at /docs. */
function siteOf(files: Readonly<Record<string, string>>) {
  const folder = mkdtempSync(join(tmpdir(), "coroom-site-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  const route = pageRoutes("/docs", folder).find(({ path }) => path === "/docs/*")!;
  return async (path: string) => {
    const { status, headers, body = "" } = await route.answer({ path } as RouteRequest);
    return { status, location: headers?.["location"], text: String(body) };
  };
}

test("[STATF1] the address of a page without its ending leads to the page, and a missing page is answered with the site's own", async () => {
  const get = siteOf({ "index.html": "home", "events.html": "events", "events.md": "# Events", "404.html": "No such page" });
  expect(await get("/docs/")).toMatchObject({ status: 200, text: "home" });
  expect(await get("/docs/events")).toMatchObject({ status: 308, location: "/docs/events.html" });
  expect(await get("/docs/events.html")).toMatchObject({ status: 200, text: "events" });
  expect(await get("/docs/events.md")).toMatchObject({ status: 200, text: "# Events" });
  for (const path of ["/docs/nothing", "/docs/nothing/", "/docs/nothing.js", "/docs/%2e%2e/secret", "/docs/%"])
    expect(await get(path)).toMatchObject({ status: 404, text: "No such page" });
});

test("[STATF2] without such a page, a missing file is answered as any other route", async () => {
  const get = siteOf({ "index.html": "home" });
  expect(await get("/docs/nothing")).toMatchObject({ status: 404, text: expect.stringContaining("nothing exists at this path") });
});
