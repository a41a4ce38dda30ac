/** Sends one request to a server over TCP and checks the answer. */

import { connect } from "node:net";

type TcpQuestion = { readonly host: string; readonly port: number; readonly send: string; readonly msMax: number };

/** True if the received text satisfies `enough`; false if the server refuses, disconnects or does not answer. */
export function answersOverTcp(question: TcpQuestion, enough: (received: string) => boolean): Promise<boolean> {
  return new Promise((resolve) => {
    let received = "";
    const socket = connect(question.port, question.host, () => socket.write(question.send));
    const end = (answer: boolean): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(answer);
    };
    const timer = setTimeout(end, question.msMax, false);
    socket.on("data", (bytes) => {
      received += bytes.toString("latin1");
      if (enough(received)) end(true);
    });
    socket.on("error", () => end(false));
    socket.on("close", () => end(false));
  });
}
