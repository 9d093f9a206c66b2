import { connect, type Socket } from 'node:net';

/** QEMU's monitor could not be asked, or said no. */
export class QmpError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'QmpError';
  }
}

/** A vCPU and the thread that runs it. */
export interface QmpCpu {
  readonly index: number;
  readonly tid: number;
}

/** A session with QEMU's monitor. A socket serves one at a time. */
export interface Qmp {
  /** @throws QmpError if QEMU refuses, the connection ends or the answer does not come in time */
  execute(command: string, args?: Readonly<Record<string, unknown>>): Promise<unknown>;
  /** What the guest is doing: `prelaunch` after -S, `inmigrate`, `running`, `paused`, … @throws QmpError */
  status(): Promise<string>;
  /** The vCPU threads in the order in which QEMU tells them. @throws QmpError */
  cpus(): Promise<readonly QmpCpu[]>;
  close(): void;
}

export interface QmpOptions {
  /** Seconds for the greeting and for each answer. Default 5. */
  readonly deadline?: number;
}

/** Longest line that is read, in characters; QEMU's own are a few thousand. */
const LONGEST = 4 * 1024 * 1024;

type Message = Readonly<Record<string, unknown>>;

/**
 * Connects to a monitor's Unix socket and leaves its negotiation mode. Events are passed over.
 * Source: QEMU, docs/interop/qmp-spec.
 * @throws QmpError
 */
export async function connectQmp(path: string, { deadline = 5 }: QmpOptions = {}): Promise<Qmp> {
  const lines = await openLines(path, deadline);
  let asked = 0;

  const execute: Qmp['execute'] = async (command, args) => {
    const id = ++asked;
    lines.write(`${JSON.stringify({ execute: command, ...(args && { arguments: args }), id })}\n`);
    const answer = await lines.next((message) => message['id'] === id || 'error' in message, `an answer to ${command}`);
    if ('return' in answer) return answer['return'];
    const error = answer['error'] as { readonly desc?: unknown } | undefined;
    throw new QmpError(`${path}: ${command}: ${String(error?.desc ?? 'refused')}`);
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
    async status() {
      const { status } = (await execute('query-status')) as { readonly status?: unknown };
      if (typeof status !== 'string') throw new QmpError(`${path}: query-status tells no status`);
      return status;
    },
    async cpus() {
      const found = await execute('query-cpus-fast');
      if (!Array.isArray(found)) throw new QmpError(`${path}: query-cpus-fast tells no list`);
      return found.map((cpu: Message) => {
        const { 'cpu-index': index, 'thread-id': tid } = cpu;
        if (!Number.isInteger(index) || !Number.isInteger(tid)) {
          throw new QmpError(`${path}: query-cpus-fast tells a vCPU without an index and a thread`);
        }
        return { index: index as number, tid: tid as number };
      });
    },
    close: lines.close,
  };
}

interface Lines {
  write(text: string): void;
  /** The next message that is wanted; others are dropped. */
  next(isWanted: (message: Message) => boolean, what: string): Promise<Message>;
  close(): void;
}

async function openLines(path: string, deadline: number): Promise<Lines> {
  const socket = await open(path);
  const messages: Message[] = [];
  let rest = '';
  let ended: QmpError | undefined;
  let wake = () => {};

  const end = (why: string, cause?: Error) => {
    ended ??= new QmpError(`${path}: ${why}`, { cause });
    wake();
  };
  socket.setEncoding('utf8');
  socket.on('data', (chunk: string) => {
    rest += chunk;
    const lines = rest.split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > LONGEST) {
      end('a line without end');
      socket.destroy();
    }
    for (const line of lines) {
      const message = parse(line);
      if (message === undefined) end('this is no monitor that speaks QMP');
      else messages.push(message);
    }
    wake();
  });
  socket.on('error', (error) => end(error.message, error));
  socket.on('close', () => end('QEMU has closed the connection'));

  return {
    write: (text) => void socket.write(text),
    close: () => void socket.destroy(),
    async next(isWanted, what) {
      const until = performance.now() + deadline * 1000;
      for (;;) {
        const wanted = messages.splice(0).find(isWanted);
        if (wanted !== undefined) return wanted;
        if (ended !== undefined) throw ended;
        const left = until - performance.now();
        if (left <= 0) throw new QmpError(`${path}: within ${deadline} s there was not ${what}`);
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, left);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
    },
  };
}

function open(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    const onError = (error: Error) => reject(new QmpError(`${path}: ${error.message}`, { cause: error }));
    socket.once('error', onError);
    socket.once('connect', () => {
      socket.off('error', onError);
      resolve(socket);
    });
  });
}

/** Undefined for what is no JSON object. */
function parse(line: string): Message | undefined {
  if (line.trim() === '') return {};
  try {
    const message: unknown = JSON.parse(line);
    return typeof message === 'object' && message !== null ? (message as Message) : undefined;
  } catch {
    return undefined;
  }
}
