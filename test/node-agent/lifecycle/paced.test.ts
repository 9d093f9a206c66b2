import assert from 'node:assert/strict';
import { Throttle } from '../../../node-agent/lifecycle/duty.ts';

const busyFor = (millis: number) => {
  const end = performance.now() + millis;
  while (performance.now() < end);
};

describe('paced work', () => {
  it('runs once for any number of requests', async () => {
    let done = 0;
    const paced = new Throttle(() => done++, 0.02, 10);
    for (let i = 0; i < 100; i++) paced.soon();
    assert.equal(done, 0);
    await new Promise((resolve) => setTimeout(resolve, 60));
    assert.equal(done, 1);
  });

  it('uses only its share of the time for any number of requests', async () => {
    let busy = 0;
    const work = () => {
      busyFor(10);
      busy += 10;
    };
    const paced = new Throttle(work, 0, 10);
    const begun = performance.now();
    const asking = setInterval(paced.soon, 1);
    await new Promise((resolve) => setTimeout(resolve, 1000));
    clearInterval(asking);
    paced.cancel();
    const share = busy / (performance.now() - begun);
    assert.ok(busy >= 20 && share < 0.25, `${busy} ms, ${Math.round(share * 100)} %`);
  });

  it('does not run after a cancel', async () => {
    let done = 0;
    const paced = new Throttle(() => done++, 0.01, 10);
    paced.soon();
    paced.cancel();
    await new Promise((resolve) => setTimeout(resolve, 40));
    assert.equal(done, 0);
    paced.now();
    assert.equal(done, 1);
  });
});
