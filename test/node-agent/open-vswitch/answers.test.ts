import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { askSwitch } from '../../../node-agent/open-vswitch/answers.ts';
import { eventually } from '../../support/eventually.ts';
import { tempDirectories } from '../support.ts';

const PID = 4711;
const INTERVAL_SECONDS = 0.2;

/** A daemon's socket that answers each request, while it does not hang. */
class Daemon {
  isHung = false;
  connections = 0;
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  constructor(path: string) {
    this.#server = createServer((socket) => {
      this.connections++;
      this.#sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('data', (chunk) => {
        const { id } = JSON.parse(chunk.toString()) as { id: number };
        if (!this.isHung) socket.write(JSON.stringify({ id, result: [], error: null }));
      });
    }).listen(path);
  }

  stop(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

describe('whether Open vSwitch answers', function () {
  this.timeout(30_000);
  const temp = tempDirectories();
  let rundir: string;
  let database: Daemon;
  let vswitchd: Daemon;
  let problems: Map<string, string | undefined>;
  let questions: number;
  let stop: AbortController;
  let asking: Promise<void>;

  beforeEach(async () => {
    rundir = temp();
    for (const name of ['ovsdb-server', 'ovs-vswitchd']) writeFileSync(join(rundir, `${name}.pid`), `${PID}\n`);
    database = new Daemon(join(rundir, 'db.sock'));
    vswitchd = new Daemon(join(rundir, `ovs-vswitchd.${PID}.ctl`));
    problems = new Map();
    stop = new AbortController();
    questions = 0;
    const onProblem = (name: string, problem: string | undefined) => {
      problems.set(name, problem);
      questions++;
    };
    asking = askSwitch(rundir, onProblem, stop.signal, INTERVAL_SECONDS);
    await eventually(() => problems.size === 2, 'both have been asked');
  });
  afterEach(async () => {
    stop.abort();
    await asking;
    for (const daemon of [database, vswitchd]) daemon.stop();
  });
  /** Ends after each daemon has been asked several times. */
  const askedAgain = () => {
    const before = questions;
    return eventually(() => questions >= before + 10, 'more questions');
  };
  const texts = () => [...problems.values()].filter((text) => text !== undefined);

  it('is asked over one connection', async () => {
    await askedAgain();
    assert.deepEqual([texts(), database.connections, vswitchd.connections], [[], 1, 1]);
  });

  for (const name of ['ovsdb-server', 'ovs-vswitchd'] as const) {
    it(`${name} that hangs is named, and no longer when it answers`, async () => {
      const daemon = name === 'ovs-vswitchd' ? vswitchd : database;
      daemon.isHung = true;
      await eventually(() => texts().length > 0, 'a problem', 10);
      assert.equal(texts().length, 1);
      assert.match(texts()[0] ?? '', new RegExp(`^${name} does not answer: .*no answer to \\w+ in 3 s$`));
      daemon.isHung = false;
      await eventually(() => texts().length === 0, 'no problem', 10);
    });
  }

  it('one that was killed leaves its socket, and is named', async () => {
    vswitchd.stop();
    // Node.js removes the socket. A file without a listener refuses connections, too.
    writeFileSync(join(rundir, `ovs-vswitchd.${PID}.ctl`), '');
    await eventually(() => /^ovs-vswitchd does not answer: .*ECONNREFUSED/.test(texts().join('; ')), 'a problem');
    await askedAgain();
    assert.equal(texts().length, 1);
  });

  it('one whose socket is elsewhere is no problem', async () => {
    rmSync(join(rundir, 'db.sock'));
    database.stop();
    await askedAgain();
    assert.deepEqual(texts(), []);
  });

  it('one that was stopped has no pidfile, and is no problem', async () => {
    rmSync(join(rundir, 'ovs-vswitchd.pid'));
    vswitchd.stop();
    await eventually(() => vswitchd.connections === 1, 'the connection is closed');
    await askedAgain();
    assert.deepEqual(texts(), []);
  });
});
