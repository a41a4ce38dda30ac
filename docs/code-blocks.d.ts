/** What the code in the documents takes from the reader's application. `code-blocks.test.ts` compiles the code beside this. */

/// <reference types="vite/client" />

import type { CoroomConnection as Connection, CoroomProvider as Provider } from "@coroom/client";
import type { HocuspocusProvider as Hocuspocus } from "@hocuspocus/provider";
import type { yCollab as bindCodeMirror } from "y-codemirror.next";
import type { WebsocketProvider as YWebsocket } from "y-websocket";
import type * as Yjs from "yjs";

declare global {
  type User = { readonly id: string; readonly name: string; readonly team: string };
  const user: User;
  const tenant: string;
  const userId: string;
  const name: string;
  const color: string;
  const token: string;
  const url: string;
  function fetchToken(): Promise<string>;
  function backendToken(): Promise<string>;
  function save(room: string, document: { readonly epoch: number; readonly seq: number; readonly update: Uint8Array }): Promise<void>;
  function userOfSession(request: Request): Promise<User | undefined>;

  const doc: Yjs.Doc;
  const notesDoc: Yjs.Doc;
  const tasksDoc: Yjs.Doc;
  const text: Yjs.Text;
  const bytes: Uint8Array;
  const provider: Provider;
  const connection: Connection;
  const canvas: HTMLCanvasElement;

  const HocuspocusProvider: typeof Hocuspocus;
  const WebsocketProvider: typeof YWebsocket;
  const yCollab: typeof bindCodeMirror;

  /** Whatever the application does with what it is given. */
  type Shows = (...given: readonly unknown[]) => void;
  const apply: Shows;
  const draw: Shows;
  const show: Shows;
  const showConnection: Shows;
  const showDocument: Shows;
  const showRefusal: Shows;
  const showSaved: Shows;
  const Notes: () => null;
  const Editor: (given: { readonly doc: Yjs.Doc; readonly awareness: Provider["awareness"] }) => null;
}
