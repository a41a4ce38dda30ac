import { expect, test } from "vitest";

import { queryWith, queryWithoutToken, reencodeParameter, requestToken } from "./requests.ts";
import { methodsByPath, parameterCount } from "./route-table.ts";

test("[RTB1] a path names all its methods, and a path with * names none", () => {
  const routes = [
    { method: "get", path: "/v1/rooms/:room/versions" },
    { method: "post", path: "/v1/rooms/:room/versions" },
    { method: "get", path: "/*" },
  ] as const;
  expect([...methodsByPath(routes)]).toEqual([["/v1/rooms/:room/versions", "GET, HEAD, POST"]]);
  expect(parameterCount("/v1/rooms/:room/versions/:version")).toBe(2);
});

test("[RTB2] the Authorization header has priority over the query's token, and an empty token counts as missing", () => {
  const ask = (authorization: string, query: string) => requestToken({ header: () => authorization, query: new URLSearchParams(query) });
  expect(ask("Bearer one", "token=two")).toBe("one");
  expect(ask("", "token=two")).toBe("two");
  expect(ask("Basic one", "token=")).toBeUndefined();
});

test("[RTB3] a service receives neither the token nor unknown parameters, and no path in a parameter", () => {
  const query = new URLSearchParams("token=secret&seq=4&limit=10");
  expect(queryWithoutToken(query)).toBe("?seq=4&limit=10");
  expect(queryWith(query, ["seq"])).toBe("?seq=4");
  expect(queryWith(query, ["time"])).toBe("");
  expect(reencodeParameter("..%5Cother")).toBe("..%5Cother");
  expect(reencodeParameter("..\\other")).toBe("..%5Cother");
});
