import { expect, test } from "vitest";
import { serverAddressOf, snapshotUrl } from "../options.ts";

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
