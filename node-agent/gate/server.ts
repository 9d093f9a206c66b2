import { once } from 'node:events';
import { chmodSync, mkdirSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { dirname } from 'node:path';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { sleep, underSignals } from '../../runtime/time.ts';
import { placeSocket } from '../files/own-socket.ts';
import { watchDirectory } from '../files/watch-directory.ts';
import { ChangeSignal } from '../lifecycle/duty.ts';
import type { AgentLogger, AgentMessages } from '../telemetry/log-messages.ts';
import { ProtocolError, type Question, QuestionReader } from './protocol.ts';

export type GateCaller = Pick<GateConnection, 'send' | 'end' | 'gone'>;

/** A shim that exceeds them is disconnected and uses the state file. A node has a few hundred pods. */
const LIMITS = {
  /** Connections, including ADDs whose delegate runs. A malformed request leaves up to 64 KiB to the garbage collector. */
  connections: 256,
  bytes: 32 * 1024 * 1024,
  /** Seconds from the connection within which a shim must have sent its request. */
  questionWithin: 2,
};

interface GateServerDeps {
  readonly socketPath: string;
  /** Answers a request. An exception closes the connection, and the shim uses the state file. */
  readonly answer: (question: Question, asker: GateCaller) => void | Promise<void>;
  readonly log: AgentLogger;
  readonly limits?: Partial<typeof LIMITS>;
}

/** The pause before it listens again: two programs that replace each other's socket must not keep the node busy. */
const RELISTEN_SECONDS = 1;

/** Holds the connections of shims and the bytes of their requests; each ends when its shim disconnects. */
export class GateServer {
  readonly #deps: GateServerDeps;
  readonly #limits: typeof LIMITS;
  readonly #problems: ProblemLog<AgentMessages>;
  readonly #acceptProblems: ProblemLog<AgentMessages>;
  readonly #connections = new Set<GateConnection>();

  constructor(deps: GateServerDeps) {
    this.#deps = deps;
    this.#limits = { ...LIMITS, ...deps.limits };
    this.#problems = new ProblemLog(deps.log);
    this.#acceptProblems = new ProblemLog(deps.log, { socketPath: deps.socketPath });
  }

  /** Listens until the signal aborts, also if its socket is removed or replaced. @throws Error if it cannot */
  async run(signal: AbortSignal): Promise<void> {
    const { socketPath, log } = this.#deps;
    try {
      while (!signal.aborted) {
        await this.#listen(signal);
        if (signal.aborted) break;
        log.warn({ socketPath }, 'the gate’s socket was removed or replaced; listening again');
        await sleep(RELISTEN_SECONDS, signal).catch(() => undefined);
      }
    } finally {
      for (const connection of this.#connections) connection.close();
    }
  }

  /** Listens until the signal aborts or the socket is no longer at its path. Its connections stay. */
  async #listen(signal: AbortSignal): Promise<void> {
    const { socketPath } = this.#deps;
    mkdirSync(dirname(socketPath), { recursive: true, mode: 0o755 });
    const server = createServer((socket) => this.#serve(socket));
    // Without descriptors, accepting a connection fails; the server continues.
    const onError = (error: Error) =>
      this.#acceptProblems.failed(error, 'closed a gate connection; the CNI plugin uses the state file');
    try {
      const gateSocket = await placeSocket(socketPath, async (path) => {
        await once(server.listen(path), 'listening');
        server.on('error', onError);
        chmodSync(path, 0o600);
      });
      const removed = new ChangeSignal();
      const onChange = () => gateSocket.isInPlace() || removed.set();
      await underSignals([signal], undefined, (listening) => {
        watchDirectory({ path: dirname(socketPath), signal: listening, onChange, log: this.#deps.log });
        return removed.wait(listening);
      });
      gateSocket.remove();
    } finally {
      server.close();
    }
  }

  #serve(socket: Socket): void {
    socket.on('error', () => socket.destroy());
    if (this.#connections.size >= this.#limits.connections) {
      this.#refuse(socket, `more than ${this.#limits.connections} concurrent connections`);
      return;
    }
    this.#acceptProblems.recovered();
    const connection = new GateConnection(socket, this.#limits.questionWithin);
    this.#connections.add(connection);
    connection.gone.addEventListener('abort', () => this.#connections.delete(connection), { once: true });
    const read = (chunk: Buffer) => {
      try {
        const question = connection.read(chunk);
        if (this.#reservedBytes() > this.#limits.bytes) {
          this.#refuse(socket, `concurrent requests have more than ${this.#limits.bytes} bytes`);
        } else if (question !== undefined) {
          socket.off('data', read);
          // The shim sends nothing more. Keep reading to detect its disconnection.
          socket.resume();
          void this.#answer(question, connection);
        }
      } catch (err) {
        if (err instanceof ProtocolError) this.#problems.failed(err.message, 'ignored malformed gate request');
        else this.#failed(err);
        connection.close();
      }
    };
    socket.on('data', read);
  }

  /** Never rejects. */
  async #answer(question: Question, connection: GateConnection): Promise<void> {
    try {
      await this.#deps.answer(question, connection);
    } catch (err) {
      this.#failed(err);
      connection.close();
    } finally {
      connection.answered();
    }
  }

  #reservedBytes(): number {
    let sum = 0;
    for (const { reservedBytes } of this.#connections) sum += reservedBytes;
    return sum;
  }

  #refuse(socket: Socket, problem: string): void {
    this.#problems.failed(problem, 'closed a gate connection; the CNI plugin uses the state file');
    socket.destroy();
  }

  #failed(err: unknown): void {
    this.#deps.log.error({ err }, 'gate server failed; CNI plugins use the state file');
  }
}

/** One shim's connection. It ends when the shim disconnects, or without a whole request in time. */
class GateConnection {
  readonly #socket: Socket;
  readonly #reader = new QuestionReader();
  readonly #gone = new AbortController();
  /** Counted from the connection, not from the last byte: sending one byte at a time gains no time. */
  readonly #deadline: NodeJS.Timeout;
  #isAnswered = false;

  constructor(socket: Socket, questionWithinSeconds: number) {
    this.#socket = socket;
    this.#deadline = setTimeout(() => socket.destroy(), questionWithinSeconds * 1000);
    socket.on('close', () => {
      clearTimeout(this.#deadline);
      this.#gone.abort();
    });
  }

  /** Aborts when the shim disconnects. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  /** Bytes of the request that are kept until it is answered. */
  get reservedBytes(): number {
    return this.#isAnswered ? 0 : this.#reader.size;
  }

  /** @returns the request once it is complete @throws ProtocolError */
  read(chunk: Buffer): Question | undefined {
    const question = this.#reader.read(chunk);
    if (question !== undefined) clearTimeout(this.#deadline);
    return question;
  }

  answered(): void {
    this.#isAnswered = true;
  }

  send(frame: string | Buffer): void {
    if (this.#socket.writable) this.#socket.write(frame);
  }

  end(frame: string | Buffer): void {
    if (this.#socket.writable) this.#socket.end(frame);
  }

  close(): void {
    this.#socket.destroy();
  }
}
