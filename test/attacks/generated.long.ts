import { describeRestarts } from './generated.ts';

describe('a thousand objects with a hostile field', () => describeRestarts(1000));
