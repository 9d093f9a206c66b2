import assert from 'node:assert/strict';
import { pooledSink } from '../../../scheduler-plugin/wire/pooled-sink.ts';

/** A pool that records which buffers are taken and returned. */
function poolOf() {
  const taken: number[] = [];
  const open = new Set<Buffer>();
  return {
    taken,
    open,
    pool: {
      take(size: number) {
        taken.push(size);
        const buffer = Buffer.alloc(size);
        open.add(buffer);
        return buffer;
      },
      give: (buffer: Buffer) => void open.delete(buffer),
    },
  };
}

describe('a body in buffers of the pool', () => {
  it('contains the written bytes, in a buffer that doubles and is returned once', () => {
    const { pool, taken, open } = poolOf();
    const sink = pooledSink(pool, 100);
    for (const text of ['abcd', 'efgh', 'i']) sink.write(Buffer.from(text));
    assert.deepEqual([taken, open.size], [[8, 18], 1]);
    const { bytes, release } = sink.finish();
    assert.equal(bytes.toString(), 'abcdefghi');
    release();
    release();
    assert.equal(open.size, 0);
  });

  it('takes at most the size of the largest body', () => {
    const { pool, taken } = poolOf();
    const sink = pooledSink(pool, 10);
    sink.write(Buffer.from('abcdefgh'));
    sink.write(Buffer.from('ij'));
    assert.deepEqual([taken, sink.finish().bytes.toString()], [[10], 'abcdefghij']);
  });

  it('is empty if nothing was written, and returns its buffer when it is dropped', () => {
    const { pool, open } = poolOf();
    assert.equal(pooledSink(pool, 10).finish().bytes.length, 0);
    open.clear();
    const sink = pooledSink(pool, 10);
    sink.drop();
    sink.write(Buffer.from('abc'));
    assert.equal(open.size, 1);
    sink.drop();
    assert.equal(open.size, 0);
  });
});
