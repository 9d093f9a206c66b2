import { chmodSync, mkdirSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { dirname } from 'node:path';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { sleep, underSignals } from '../../runtime/time.ts';
import { placeSocket } from '../files/own-socket.ts';
import { watchDirectory } from '../files/watch-directory.ts';
import { untilAborted } from '../lifecycle/duty.ts';
import type { AgentLogger } from '../telemetry/log-messages.ts';
import { createQuestionReader, ProtocolError, type Question } from './protocol.ts';

export interface GateCaller {
  send(frame: string | Buffer): void;
  end(frame: string | Buffer): void;
  /** Aborts when the shim disconnects. */
  readonly gone: AbortSignal;
}

/** A shim that exceeds them is disconnected and uses the state file. A node has a few hundred pods. */
const LIMITS = {
  /** Connections, including ADDs whose delegate runs. A malformed request leaves up to 64 KiB to the garbage collector. */
  connections: 256,
  bytes: 32 * 1024 * 1024,
  /** Seconds from the connection within which a shim must have sent its request. */
  questionWithin: 2,
};

export interface GateServerDeps {
  readonly socketPath: string;
  /** Answers a request. An exception closes the connection, and the shim uses the state file. */
  readonly answer: (question: Question, asker: GateCaller) => void | Promise<void>;
  readonly log: AgentLogger;
  readonly limits?: Partial<typeof LIMITS>;
}

/** The pause before it listens again: two programs that replace each other's socket must not keep the node busy. */
const RELISTEN_SECONDS = 1;

export function createGateServer({ socketPath, answer, log, limits }: GateServerDeps) {
  const { connections, bytes, questionWithin } = { ...LIMITS, ...limits };
  const problems = new ProblemLog(log);
  const sockets = new Set<Socket>();
  let reservedBytes = 0;

  const serve = (socket: Socket) => {
    const refuse = (problem: string) => {
      problems.failed(problem, 'closed a gate connection; the CNI plugin uses the state file');
      socket.destroy();
    };
    if (sockets.size >= connections) return refuse(`more than ${connections} concurrent connections`);
    sockets.add(socket);
    const gone = new AbortController();
    const reader = createQuestionReader();
    let own = 0;
    /** Reserves bytes for this connection; the number only grows until its release. */
    const reserve = (size: number) => {
      reservedBytes += size - own;
      own = size;
    };
    const asker: GateCaller = {
      send: (frame) => void (socket.writable && socket.write(frame)),
      end: (frame) => void (socket.writable && socket.end(frame)),
      gone: gone.signal,
    };
    const failed = (err: unknown) => {
      log.error({ err }, 'gate server failed; CNI plugins use the state file');
      socket.destroy();
    };
    // Counted from the connection, not from the last byte: sending one byte at a time gains no time.
    const deadline = setTimeout(() => socket.destroy(), questionWithin * 1000);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      clearTimeout(deadline);
      sockets.delete(socket);
      gone.abort();
      reserve(0);
    });
    const read = (chunk: Buffer) => {
      try {
        const question = reader.read(chunk);
        reserve(reader.size);
        if (reservedBytes > bytes) return refuse(`concurrent requests have more than ${bytes} bytes`);
        if (question === undefined) return;
        socket.off('data', read);
        // The shim sends nothing more. Keep reading to detect its disconnection.
        socket.resume();
        clearTimeout(deadline);
        void Promise.resolve(answer(question, asker))
          .catch(failed)
          .finally(() => reserve(0));
      } catch (err) {
        if (!(err instanceof ProtocolError)) return failed(err);
        problems.failed(err.message, 'ignored malformed gate request');
        socket.destroy();
      }
    };
    socket.on('data', read);
  };

  /** Listens until the signal aborts or the socket is no longer at its path. Its connections stay. */
  const listen = async (signal: AbortSignal): Promise<void> => {
    mkdirSync(dirname(socketPath), { recursive: true, mode: 0o755 });
    const server = createServer(serve);
    const own = await placeSocket(socketPath, async (path) => {
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject);
        server.listen(path, resolve);
      });
      chmodSync(path, 0o600);
    });
    const lost = new AbortController();
    await underSignals([signal, lost.signal], undefined, async (either) => {
      const check = () => own.isInPlace() || lost.abort();
      watchDirectory({ path: dirname(socketPath), signal: either, onChange: check });
      await untilAborted(either);
    });
    own.remove();
    server.close();
  };

  return {
    /** Listens until the signal aborts, also if its socket is removed or replaced. @throws Error if it cannot */
    async run(signal: AbortSignal): Promise<void> {
      try {
        while (!signal.aborted) {
          await listen(signal);
          if (signal.aborted) break;
          log.warn({ socketPath }, 'the gate’s socket was removed or replaced; listening again');
          await sleep(RELISTEN_SECONDS, signal).catch(() => undefined);
        }
      } finally {
        for (const socket of sockets) socket.destroy();
      }
    },
  };
}
