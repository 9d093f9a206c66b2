import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createStateFile, readStateFile } from '../../../sandbox/kubelet/state-files.ts';
import { tempDirectories } from '../../support/files.ts';

describe('cpu_manager_state', () => {
  const temp = tempDirectories();
  let path: string;
  beforeEach(() => {
    path = join(temp(), 'cpu_manager_state');
  });
  const create = () => createStateFile(path, 'static', { defaultSet: CpuSet.parse('0-7'), assignments: new Map() });

  it('has the checksum of a real kubelet', async () => {
    await createStateFile(path, 'none', { defaultSet: CpuSet.EMPTY, assignments: new Map() });
    assert.equal(JSON.parse(await readFile(path, 'utf8')).checksum, 1353318690);
  });

  it('frees CPUs of an init container that an app container shares only once', async () => {
    const file = await create();
    await file.assign('u', 'init', CpuSet.parse('2-3'));
    await file.assign('u', 'app', CpuSet.parse('2-3'));
    assert.equal((await readStateFile(path, 'static'))?.defaultSet.toString(), '0-1,4-7');
    await file.release('u');
    assert.equal((await readStateFile(path, 'static'))?.defaultSet.toString(), '0-7');
  });

  it('survives a restart', async () => {
    const file = await create();
    await file.assign('u', 'c', CpuSet.parse('2-3'));
    const state = await readStateFile(path, 'static');
    assert.equal(state?.defaultSet.toString(), '0-1,4-7');
    assert.equal(state?.assignments.get('u')?.get('c')?.toString(), '2-3');
    assert.equal(await readStateFile(`${path}x`, 'static'), undefined);
  });
  it('prevents a start of the kubelet with another policy or checksum', async () => {
    await create();
    await assert.rejects(readStateFile(path, 'none'), /policy "none" differs from state checkpoint policy "static"/);
    await writeFile(path, (await readFile(path, 'utf8')).replace('0-7', '0-6'));
    await assert.rejects(readStateFile(path, 'static'), /corrupted/);
  });
});
