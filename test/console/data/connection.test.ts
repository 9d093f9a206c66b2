import assert from 'node:assert/strict';
import { join } from 'node:path';
import { mock } from 'node:test';
import { WIRE_VERSION } from '../../../console/data/wire.ts';
import { root } from '../../support/bundles.ts';

/** Started by its path: the types of this program have no DOM. */
const MODULE = join(root, 'console/data/connection.ts');
interface Module {
  readonly PageConnection: new (listeners: {
    onRecords(records: readonly unknown[]): void;
    onAnew(): void;
    onReady(): void;
    onState(state: string, lastMessage: number): void;
  }) => unknown;
}

const OPEN = 1;

/** The browser's EventSource; the test sends the events. */
class EventSourceStandIn extends EventTarget {
  static readonly OPEN = OPEN;
  static readonly opened: EventSourceStandIn[] = [];
  readyState = OPEN;
  readonly path: string;

  constructor(path: string) {
    super();
    this.path = path;
    EventSourceStandIn.opened.push(this);
  }

  close(): void {
    this.readyState = 2;
  }

  send(event: string, data: unknown = ''): void {
    this.dispatchEvent(new MessageEvent(event, { data: JSON.stringify(data) }));
  }
}

describe('the page’s connection to its server', () => {
  const { opened } = EventSourceStandIn;
  let page: EventTarget;
  let received: unknown[];
  let now: number;
  let connection: Module;
  const last = () => opened.at(-1)!;
  const states = () => opened.map(({ readyState }) => readyState === OPEN);

  before(async () => {
    connection = (await import(MODULE)) as Module;
  });
  after(() => {
    for (const name of ['EventSource', 'document']) Reflect.deleteProperty(globalThis, name);
  });
  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
    now = 0;
    mock.method(Date, 'now', () => now);
    page = new EventTarget();
    Object.assign(globalThis, { EventSource: EventSourceStandIn, document: page });
    opened.length = 0;
    received = [];
    new connection.PageConnection({
      onRecords: (records) => received.push(records),
      onAnew: () => received.push('replace'),
      onReady: () => received.push('ready'),
      onState: (state, lastMessage) => received.push([state, lastMessage]),
    });
  });
  afterEach(() => {
    mock.timers.reset();
    mock.reset();
  });
  const pass = (milliseconds: number) => {
    now += milliseconds;
    mock.timers.tick(milliseconds);
  };

  it('gets all records, then changes', () => {
    last().send('hello', { wire: WIRE_VERSION });
    last().send('message', [['n', 'n1']]);
    last().send('ready');
    assert.deepEqual(received, ['replace', [['n', 'n1']], ['live', 0], 'ready']);
    assert.equal(last().path, '/events');
  });

  it('ends if the server has another version of the format', () => {
    last().send('hello', { wire: WIRE_VERSION + 1 });
    assert.deepEqual([received, states()], [[['outdated', 0]], [false]]);
  });

  it('is opened again two seconds after an error', () => {
    pass(500);
    last().send('ready');
    received.length = 0;
    last().send('error');
    assert.deepEqual([received, states()], [[['broken', 500]], [false]]);
    pass(1999);
    assert.equal(opened.length, 1);
    pass(1);
    assert.deepEqual(states(), [false, true]);
  });

  it('is opened again after 16 seconds without a heartbeat, also when the page is shown again', () => {
    pass(12_000);
    last().send('beat');
    pass(12_000);
    assert.deepEqual([received, opened.length], [[], 1]);
    pass(4000);
    assert.deepEqual([received, states()], [[['broken', 12_000]], [false, true]]);
    now += 60_000;
    page.dispatchEvent(new Event('visibilitychange'));
    assert.deepEqual(states(), [false, false, true]);
  });
});
