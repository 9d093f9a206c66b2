import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { connectQmp, QmpError } from '../../native/qmp.ts';
import { tempDirectories } from '../support/files.ts';

const GREETING = { QMP: { version: { qemu: { major: 9, minor: 0, micro: 0 } }, capabilities: [] } };
type Answer = (command: string, id: number) => unknown;

describe('QEMU’s monitor, controlled by its guest', () => {
  const temp = tempDirectories();
  let server: Server;
  let path: string;
  let socket: Socket;
  const sockets: Socket[] = [];
  let answer: Answer;
  let greet: (to: Socket) => void;

  beforeEach(async () => {
    path = join(temp(), 'qmp.sock');
    greet = (to) => void to.write(`${JSON.stringify(GREETING)}\n`);
    answer = () => ({});
    server = createServer((to) => {
      socket = to;
      sockets.push(to);
      to.on('error', () => undefined);
      const lines = createInterface({ input: to });
      // It repeats the errors of the connection.
      lines.on('error', () => undefined);
      lines.on('line', (line) => {
        const { execute, id } = JSON.parse(line) as { execute: string; id: number };
        const reply = execute === 'qmp_capabilities' ? {} : answer(execute, id);
        if (reply !== undefined) to.write(`${JSON.stringify({ return: reply, id })}\n`);
      });
      greet(to);
    });
    await new Promise<void>((resolve) => server.listen(path, resolve));
  });
  afterEach(() => {
    for (const open of sockets.splice(0)) open.destroy();
    server.close();
  });

  const refusal = (says: RegExp) => (error: unknown) =>
    error instanceof QmpError && says.test(error.message) && error.message.length < 500;
  const own = () => readdirSync('/proc/self/task').map(Number);
  const cpusFor = (tids: readonly number[]) => tids.map((tid, i) => ({ 'cpu-index': i, 'thread-id': tid }));

  it('may answer in pieces of any size, within a character, too', async () => {
    answer = (_command, id) => {
      const bytes = Buffer.from(`\n${JSON.stringify({ return: { status: 'ä'.repeat(100) }, id })}\n`);
      for (const byte of bytes) socket.write(Buffer.from([byte]));
      return undefined;
    };
    const qmp = await connectQmp(path);
    assert.equal(await qmp.status(), 'ä'.repeat(100));
  });

  it('may not name threads of other processes: init’s, a child’s, an invalid one', async () => {
    const child = spawn('sleep', ['60']);
    try {
      for (const tid of [1, child.pid ?? 0, 4_194_304]) {
        answer = () => cpusFor([own()[0] ?? 0, tid]);
        const qmp = await connectQmp(path);
        const text = `QEMU reports vCPU 1 as thread ${tid}, which is not a thread of process ${process.pid}`;
        await assert.rejects(qmp.cpus(), refusal(new RegExp(text)));
      }
    } finally {
      child.kill('SIGKILL');
    }
  });

  for (const [what, cpus, says] of [
    ['more vCPUs than a machine has', Array.from({ length: 8193 }, () => 0), /names 8193 vCPUs/],
    ['invalid indexes', [{ 'cpu-index': -1, 'thread-id': 5 }], /without an index and a thread/],
    ['invalid threads', [{ 'cpu-index': 0, 'thread-id': 0 }], /without an index and a thread/],
    ['a null vCPU', [null], /without an index and a thread/],
    ['an answer that is not a list', { x: 1 }, /gives no list/],
  ] as const) {
    it(`refuses ${what}`, async () => {
      answer = () => cpus;
      const qmp = await connectQmp(path);
      await assert.rejects(qmp.cpus(), refusal(says));
    });
  }

  it('causes short errors for a huge error or status', async () => {
    const long = 'x'.repeat(900_000);
    answer = (_command, id) => {
      socket.write(`${JSON.stringify({ error: { desc: long }, id })}\n`);
      return undefined;
    };
    const qmp = await connectQmp(path);
    await assert.rejects(qmp.status(), refusal(/query-status: x+$/));
    answer = () => ({ status: long });
    await assert.rejects(qmp.status(), refusal(/names no status/));
  });

  it('ends the connection with endless lines, events or bytes, and nothing accumulates', async () => {
    const event = `${JSON.stringify({ event: 'x'.repeat(1000) })}\n`;
    for (const bytes of [Buffer.alloc(64 * 1024, 0x78), event.repeat(64)]) {
      answer = () => {
        const flood = () => {
          while (!socket.destroyed && socket.write(bytes));
        };
        socket.on('drain', flood);
        flood();
        return undefined;
      };
      const qmp = await connectQmp(path);
      const before = process.memoryUsage();
      await assert.rejects(qmp.status(), refusal(/more than 8388608 characters/));
      const after = process.memoryUsage();
      assert.ok(after.heapUsed + after.external - before.heapUsed - before.external < 64 * 1024 * 1024);
    }
  });

  it('may send a few unexpected events; more end the connection', async () => {
    const qmp = await connectQmp(path);
    const closed = once(socket, 'close');
    socket.write('{"event":"STOP"}\n'.repeat(1000));
    await closed;
    await assert.rejects(qmp.status(), refusal(/sent too many unsolicited messages/));
  });

  it('without an answer is left at the deadline, however many other messages arrive', async () => {
    answer = () => {
      const timer = setInterval(() => socket.write('{"event":"STOP"}\n'), 5);
      socket.on('close', () => clearInterval(timer));
      return undefined;
    };
    const qmp = await connectQmp(path, { deadline: 0.3 });
    await assert.rejects(qmp.status(), refusal(/within 0.3 s there was not an answer/));
  });
});
