import { expect, test } from "vitest";
import { serverAddressOf, snapshotUrl, socketUrl } from "../options.ts";

test.each([
  ["ws://127.0.0.1:8080", "ws://127.0.0.1:8080/", "http://127.0.0.1:8080"],
  ["http://127.0.0.1:8080/", "ws://127.0.0.1:8080/", "http://127.0.0.1:8080"],
  ["wss://app.example", "wss://app.example/", "https://app.example"],
  ["https://app.example/coroom/?x=1#y", "wss://app.example/coroom/", "https://app.example/coroom"],
])("[CAD1] %s is one server, reached over WebSocket and HTTP", (url, socket, http) => {
  expect(serverAddressOf(url)).toEqual({ socket, http });
});

test.each(["", "app.example", "ftp://app.example", "localhost:8080"])("[CAD2] %j is rejected with an example of a valid URL", (url) => {
  expect(() => serverAddressOf(url)).toThrow("ws://host:port");
});

test("[CAD3] a room id cannot change the path of the URL that it is put into", () => {
  expect(snapshotUrl(serverAddressOf("ws://h"), "a/../b ?#ü")).toBe("http://h/v1/rooms/a%2F..%2Fb%20%3F%23%C3%BC/snapshot");
});

test("[WIRE55] the socket's URL names the room by a short hash only, and another gateway by a number", () => {
  const address = serverAddressOf("wss://h/path");
  expect(socketUrl(address, undefined, 1)).toBe("wss://h/path/");
  const [plain, detour] = [socketUrl(address, "board of directors", 0), socketUrl(address, "board of directors", 2)];
  expect(plain).toMatch(/^wss:\/\/h\/path\/\?route=[0-9a-f]{4}$/);
  expect(detour).toBe(`${plain}-2`);
  const keys = new Set(Array.from({ length: 1_000 }, (_, index) => socketUrl(address, `room-${index}`, 0)));
  expect(keys.size).toBeGreaterThan(950);
});
