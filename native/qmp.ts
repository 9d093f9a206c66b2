import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { isThreadOf, peerOf, threadsOfProcess } from './peer.ts';

/** QEMU's monitor did not answer, or refused. */
export class QmpError extends Error {
  override readonly name = 'QmpError';
}

export interface QmpCpu {
  readonly index: number;
  readonly tid: number;
}

/** A session with QEMU's monitor. A socket serves one session at a time. */
export type Qmp = Awaited<ReturnType<typeof connectQmp>>;

/** Maximum characters until an answer; QEMU's own lines have a few thousand. */
const MAX_CHARACTERS = 8 * 1024 * 1024;
/** Maximum messages to keep while no call waits for one; the greeting is one. */
const MAX_QUEUED_MESSAGES = 64;
/** Maximum vCPUs of a machine, and characters of a QEMU error. */
const MAX_CPUS = 8192;
const MAX_TEXT_CHARACTERS = 200;

type Message = Readonly<Record<string, unknown>>;

/** Source: QEMU, docs/interop/qmp-spec. @param deadline seconds for each answer @throws QmpError */
export async function connectQmp(path: string, { deadline = 5 }: { readonly deadline?: number } = {}) {
  const lines = new QmpLines(await open(path), path, deadline);
  let lastId = 0;

  /** @throws QmpError if QEMU refuses, the connection ends or the answer is late */
  const execute = async (command: string, args?: Readonly<Record<string, unknown>>): Promise<unknown> => {
    const id = ++lastId;
    lines.write(`${JSON.stringify({ execute: command, ...(args && { arguments: args }), id })}\n`);
    const answer = await lines.next((message) => message['id'] === id || 'error' in message, `an answer to ${command}`);
    if ('return' in answer) return answer['return'];
    const { desc } = (answer['error'] ?? {}) as { readonly desc?: unknown };
    throw new QmpError(
      `${path}: ${command}: ${typeof desc === 'string' ? desc.slice(0, MAX_TEXT_CHARACTERS) : 'refused'}`,
    );
  };

  try {
    await lines.next((message) => 'QMP' in message, 'a greeting; a monitor serves one client at a time');
    await execute('qmp_capabilities');
  } catch (error) {
    lines.close();
    throw error;
  }
  return {
    execute,
    /** The guest's state: `prelaunch` after -S, `inmigrate`, `running`, `paused`, … @throws QmpError */
    async status() {
      const { status } = ((await execute('query-status')) ?? {}) as { readonly status?: unknown };
      if (typeof status !== 'string' || status.length > MAX_TEXT_CHARACTERS) {
        throw new QmpError(`${path}: query-status names no status`);
      }
      return status;
    },
    /** In QEMU's order. A compromised QEMU may name any thread of the machine: each is verified. @throws QmpError */
    async cpus(): Promise<readonly QmpCpu[]> {
      const cpus = cpusOf(path, await execute('query-cpus-fast'));
      const foreign = cpus.find(({ tid }) => lines.peer === undefined || !isThreadOf(lines.peer, tid));
      if (foreign !== undefined) throw new QmpError(`${path}: ${foreignText(foreign, lines.peer)}`);
      return cpus;
    },
    /** Every thread of that process at this moment; empty if the process is not visible here. */
    threads: (): readonly number[] => (lines.peer === undefined ? [] : threadsOfProcess(lines.peer)),
    close: () => lines.close(),
  };
}

function cpusOf(path: string, answer: unknown): QmpCpu[] {
  if (!Array.isArray(answer)) throw new QmpError(`${path}: query-cpus-fast gives no list`);
  if (answer.length > MAX_CPUS) throw new QmpError(`${path}: query-cpus-fast names ${answer.length} vCPUs`);
  return answer.map((cpu: unknown) => {
    const { 'cpu-index': index, 'thread-id': tid } = (cpu ?? {}) as Message;
    if (!isIdBelow(index, MAX_CPUS) || !isIdBelow(tid, 2 ** 22 + 1) || tid === 0) {
      throw new QmpError(`${path}: query-cpus-fast names a vCPU without an index and a thread`);
    }
    return { index, tid };
  });
}

function isIdBelow(value: unknown, end: number): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < end;
}

function foreignText({ index, tid }: QmpCpu, peer: number | undefined): string {
  return peer === undefined
    ? 'the process at the monitor is not visible here: run this on the host, in its PID namespace'
    : `QEMU reports vCPU ${index} as thread ${tid}, which is not a thread of process ${peer} at the monitor`;
}

/** Waits for a message, at most one at a time. */
interface Waiter {
  readonly isWanted: (message: Message) => boolean;
  readonly settle: (answer: Message | QmpError) => void;
}

/**
 * The lines of a monitor as messages. Owner: QEMU; nothing is kept of a session that has ended. Messages that no call
 * waits for are dropped at the next call, and at most MAX_QUEUED_MESSAGES are kept until then.
 */
class QmpLines {
  readonly peer: number | undefined;
  readonly #socket: Socket;
  readonly #path: string;
  readonly #deadline: number;
  readonly #early: Message[] = [];
  /** The parts of a line that has no end yet. */
  #partial: string[] = [];
  /** Characters since the last call. */
  #size = 0;
  #ended: QmpError | undefined;
  #waiter: Waiter | undefined;

  /** @param deadline seconds for each message */
  constructor(socket: Socket, path: string, deadline: number) {
    this.#socket = socket;
    this.#path = path;
    this.#deadline = deadline;
    this.peer = peerOf(socket);
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      const problem = this.#read(chunk);
      if (problem !== undefined) this.#end(problem);
    });
    socket.on('error', (error) => this.#end(error.message, error));
    socket.on('close', () => this.#end('QEMU has closed the connection'));
  }

  write(text: string): void {
    this.#socket.write(text);
  }

  close(): void {
    this.#socket.destroy();
  }

  /** The next matching message; others are dropped. @throws QmpError */
  next(isWanted: (message: Message) => boolean, what: string): Promise<Message> {
    this.#size = 0;
    const match = this.#early.splice(0).find(isWanted);
    if (match !== undefined) return Promise.resolve(match);
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      const settle = (answer: Message | QmpError) => {
        this.#waiter = undefined;
        clearTimeout(timer);
        if (answer instanceof QmpError) reject(answer);
        else resolve(answer);
      };
      const late = new QmpError(`${this.#path}: within ${this.#deadline} s there was not ${what}`);
      timer = setTimeout(() => settle(late), this.#deadline * 1000);
      this.#waiter = { isWanted, settle };
    });
  }

  /** @returns why the session ends, or undefined */
  #read(chunk: string): string | undefined {
    this.#size += chunk.length;
    if (this.#size > MAX_CHARACTERS) return `it says more than ${MAX_CHARACTERS} characters`;
    this.#partial.push(chunk);
    if (!chunk.includes('\n')) return undefined;
    const lines = this.#partial.join('').split('\n');
    this.#partial = [lines.pop() ?? ''];
    for (const line of lines) {
      const message = parse(line);
      if (message === undefined) return 'the peer does not speak QMP';
      if (this.#waiter === undefined) this.#early.push(message);
      else if (this.#waiter.isWanted(message)) this.#waiter.settle(message);
      if (this.#early.length > MAX_QUEUED_MESSAGES) return 'it sent too many unsolicited messages';
    }
    return undefined;
  }

  #end(why: string, cause?: Error): void {
    this.#ended ??= new QmpError(`${this.#path}: ${why}`, { cause });
    this.#socket.destroy();
    this.#waiter?.settle(this.#ended);
  }
}

async function open(path: string): Promise<Socket> {
  const socket = connect(path);
  try {
    await once(socket, 'connect');
  } catch (cause) {
    throw new QmpError(`${path}: ${(cause as Error).message}`, { cause });
  }
  return socket;
}

/** Undefined if the line is not a JSON object. */
function parse(line: string): Message | undefined {
  if (line.trim() === '') return {};
  try {
    const message: unknown = JSON.parse(line);
    return typeof message === 'object' && message !== null ? (message as Message) : undefined;
  } catch {
    return undefined;
  }
}
