/** The published package: packed, installed into an empty project with the client, rendered on a server, checked by TypeScript. */

import { readdirSync } from "node:fs";
import { join } from "node:path";

import { afterAll, beforeAll, expect, test } from "vitest";

import { EmptyProject } from "../test/system/empty-project.ts";

let app: EmptyProject;

beforeAll(() => {
  app = new EmptyProject();
  app.install(["client", "react"], ["yjs", "react", "react-dom", "@types/react"]);
});

afterAll(() => app.remove());

test("[PKG8] the package for React holds its build, licence, README and changelog, without tests or sources", () => {
  const packed = readdirSync(join(app.folder, "node_modules/@coroom/react"), { recursive: true }).map(String);
  expect(packed).toEqual(expect.arrayContaining(["LICENSE", "README.md", "CHANGELOG.md", "dist/index.js", "dist/index.d.ts"]));
  expect(packed.filter((path) => /\.test\.|testing|(?<!\.d)\.ts$/.test(path))).toEqual([]);
});

test("[PKG8] a server renders a room, from ES modules and from CommonJS", () => {
  const body = `
    const Status = () => useStatus(useRoom("notes")).status;
    const page = createElement(CoroomProvider, { url: "ws://127.0.0.1:9", token: "t" }, createElement(Status));
    console.log(renderToString(page));`;
  const names = [
    ["{ createElement }", "react"],
    ["{ renderToString }", "react-dom/server"],
    ["{ CoroomProvider, useRoom, useStatus }", "@coroom/react"],
  ];
  app.write("server.js", names.map(([what, from]) => `import ${what} from "${from}";`).join("\n") + body);
  app.write("server.cjs", names.map(([what, from]) => `const ${what} = require("${from}");`).join("\n") + body);
  expect([app.node("server.js"), app.node("server.cjs")]).toEqual(["disconnected\n", "disconnected\n"]);
});

test("[PKG8] the types of the package are complete", () => {
  app.write(
    "page.tsx",
    `import { CoroomProvider, useHistory, useLeaderboard, useParticipants, usePresence, useRoom, useSaved, useStatus } from "@coroom/react";
     type Shown = { color: string };
     function Notes() {
       const room = useRoom<{ user: { name: string } }>("notes");
       room.provider.awareness.setLocalStateField("user", { name: "Ada" });
       // @ts-expect-error the field has another type
       room.provider.awareness.setLocalStateField("user", "Ada");
       const { others, set } = usePresence<Shown>(room);
       const color: string | undefined = others[0]?.fields.color;
       set({ color, cursor: undefined });
       const { versions } = useHistory(room);
       const { ranking } = useLeaderboard(room, { window: "day" });
       return (
         <p onPointerMove={({ clientX: x, clientY: y }) => set({ cursor: { x, y }, color: "red" })}>
           {useStatus(room).status} {useSaved(room).unsavedEdits} {useParticipants(room).length} {others.map(({ fields }) => fields.color)}
           {versions.length} {ranking.length}
         </p>
       );
     }
     export const page = <CoroomProvider url="ws://h" token={async () => "t.o.k"}><Notes /></CoroomProvider>;`,
  );
  compile("page.tsx");
});

test("[PKG14] usePresence accepts values whose type is an interface, and refuses values that JSON cannot represent", () => {
  app.write(
    "presence.tsx",
    `import { usePresence, useRoom } from "@coroom/react";
     interface Tool { readonly name: string; readonly size?: number }
     interface Shown { tool: Tool; typing: boolean }
     interface Brush { color?: string; size?: number }
     declare const shown: Shown, partial: Partial<Shown>, brush: Brush;
     export function Notes() {
       const room = useRoom("notes");
       const untyped = usePresence(room);
       untyped.set(shown);
       untyped.set({ ...shown, cursor: { x: 1, y: 2 } });
       // @ts-expect-error JSON has no dates
       untyped.set({ at: new Date() });
       // @ts-expect-error a cursor has two coordinates
       untyped.set({ cursor: { x: 1 } });
       const { own, set } = usePresence<Shown>(room);
       set(shown);
       set(partial);
       set({ tool: null, typing: undefined, viewport: null });
       // @ts-expect-error the field has another type
       set({ tool: "pen" });
       const { set: setBrush } = usePresence<Brush>(room);
       setBrush(brush);
       setBrush({ size: 2, color: null });
       // @ts-expect-error the field has another type
       setBrush({ color: 1 });
       const counts = usePresence<Record<string, number>>(room);
       counts.set({ pages: 1 });
       // @ts-expect-error the fields have another type
       counts.set({ pages: "one" });
       const dated = usePresence<{ at: Date; draw: () => void }>(room);
       // @ts-expect-error JSON has no dates
       dated.set({ at: new Date() });
       // @ts-expect-error JSON has no functions
       dated.set({ draw: () => {} });
       return <p>{own.tool?.name}{untyped.others.map(({ fields }) => String(fields["tool"]))}</p>;
     }`,
  );
  compile("presence.tsx");
});

test("[PKG16] optional options of hooks and of the provider may be undefined", () => {
  app.write(
    "options.tsx",
    `import { CoroomProvider, useLeaderboard, useRoom, useTenantBoard } from "@coroom/react";
     const { window, role, shown }: { window?: "day" | "last-week"; role?: "editors"; shown?: number } = {};
     export function Boards() {
       const live = useLeaderboard(useRoom("notes"), { window, role, shown });
       return <p>{live.state}{useTenantBoard({ board: "rooms", window, role, shown }).state}</p>;
     }
     export const page = <CoroomProvider url="ws://h" token="t" store={undefined}>{undefined}</CoroomProvider>;`,
  );
  compile("options.tsx");
});

/** Checks the types of a file as an application with strict settings does. */
function compile(file: string): void {
  const options = [
    "--noEmit",
    "--strict",
    "--exactOptionalPropertyTypes",
    "--skipLibCheck",
    "false",
    "--jsx",
    "react-jsx",
    "--target",
    "es2022",
    "--lib",
    "es2022,dom",
    "--types",
    "",
  ];
  app.tool("tsc", ...options, "--module", "esnext", "--moduleResolution", "bundler", file);
}
