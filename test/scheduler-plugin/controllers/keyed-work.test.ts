import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { WorkQueue } from '../../../scheduler-plugin/controllers/fair-queue.ts';

describe('work by key', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());

  const setUp = (atATime: number) => {
    const begun: string[] = [];
    const open = new Map<string, () => void>();
    const work = new WorkQueue((key) => {
      begun.push(key);
      return new Promise<void>((resolve) => open.set(key, resolve));
    }, atATime);
    const end = async (key: string) => {
      open.get(key)?.();
      await setImmediate();
    };
    return { work, begun, end };
  };

  it('runs for a limited number of keys at a time, and once more for a key that was added meanwhile', async () => {
    const { work, begun, end } = setUp(2);
    for (const key of ['a', 'b', 'c', 'a', 'a']) work.add(key);
    assert.deepEqual(begun, ['a', 'b']);
    await end('b');
    assert.deepEqual(begun, ['a', 'b', 'c']);
    await end('a');
    assert.deepEqual(begun, ['a', 'b', 'c', 'a']);
    await end('a');
    await end('c');
    assert.deepEqual(begun.length, 4, 'nothing is left');
  });

  it('starts once for a delayed key, after the delay that was requested last', () => {
    const { work, begun } = setUp(2);
    work.addAfter('a', 100);
    work.addAfter('a', 300);
    mock.timers.tick(299);
    assert.deepEqual(begun, []);
    mock.timers.tick(1);
    assert.deepEqual(begun, ['a']);
    mock.timers.tick(1000);
    assert.deepEqual(begun, ['a']);
  });
});
