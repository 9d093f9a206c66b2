import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { dirname } from 'node:path';
import type { Logger } from '../../runtime/log.ts';
import { untilAborted } from '../duty.ts';
import { ProtocolError, type Question, readQuestion } from './protocol.ts';

/** One shim that waits for its answer. */
export interface Asker {
  say(frame: string | Buffer): void;
  /** Says the last thing. */
  end(frame: string | Buffer): void;
  /** Aborts when the shim has gone. */
  readonly gone: AbortSignal;
}

export interface GateServerDeps {
  readonly socketPath: string;
  /** Answers a question; what it throws closes the connection, and the shim decides by the state file. */
  readonly answer: (question: Question, asker: Asker) => void | Promise<void>;
  readonly log: Logger;
}

/** Seconds within which a shim must have put its question. */
const QUESTION_WITHIN = 2;

/** One for all: making it costs more than all else that ending a connection does. */
const GONE = new Error('the CNI plugin has gone');

/** The agent's side of the gate: a unix socket that only root may connect to. */
export function createGateServer({ socketPath, answer, log }: GateServerDeps) {
  const serve = (socket: Socket) => {
    const gone = new AbortController();
    let bytes: Buffer = Buffer.alloc(0);
    const asker: Asker = {
      say: (frame) => void (socket.writable && socket.write(frame)),
      end: (frame) => void (socket.writable && socket.end(frame)),
      gone: gone.signal,
    };
    const failed = (err: unknown) => {
      log.error({ err }, 'the gate cannot answer; its state file decides');
      socket.destroy();
    };
    socket.setTimeout(QUESTION_WITHIN * 1000, () => socket.destroy());
    socket.on('error', () => socket.destroy());
    socket.on('close', () => gone.abort(GONE));
    const read = (chunk: Buffer) => {
      bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
      try {
        const question = readQuestion(bytes);
        if (question === undefined) return;
        socket.off('data', read);
        // The shim says no more; its end of the connection is how it is heard to have gone.
        socket.resume();
        socket.setTimeout(0);
        void Promise.resolve(answer(question, asker)).catch(failed);
      } catch (err) {
        if (!(err instanceof ProtocolError)) return failed(err);
        log.warn({ problem: err.message }, 'passed over what is no question of the gate');
        socket.destroy();
      }
    };
    socket.on('data', read);
  };

  return {
    /** Listens until the signal aborts. @throws Error if it cannot */
    async run(signal: AbortSignal): Promise<void> {
      mkdirSync(dirname(socketPath), { recursive: true, mode: 0o755 });
      // A socket that a killed agent left behind can be neither listened on nor connected to.
      rmSync(socketPath, { force: true });
      const sockets = new Set<Socket>();
      const server = createServer((socket) => {
        sockets.add(socket);
        socket.on('close', () => sockets.delete(socket));
        serve(socket);
      });
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject);
        server.listen(socketPath, resolve);
      });
      chmodSync(socketPath, 0o600);
      try {
        await untilAborted(signal);
      } finally {
        for (const socket of sockets) socket.destroy();
        await new Promise((resolve) => server.close(resolve));
      }
    },
  };
}
