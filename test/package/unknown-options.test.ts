/** Every factory refuses an option that it does not know, with the nearest one. */

import { describe, expect, it } from 'vitest';
import { aiModels } from '../../src/entries/ai.ts';
import { createDashboard } from '../../src/entries/dashboard.ts';
import { gitComponents } from '../../src/entries/git.ts';
import { liquidTemplates } from '../../src/entries/liquid.ts';
import { mcpClient } from '../../src/entries/mcp.ts';
import { nodeHttp } from '../../src/entries/node.ts';
import { openTelemetry } from '../../src/entries/otel.ts';
import { chromiumPdf, cloudflarePdf, embeddedPdf } from '../../src/entries/pdf.ts';
import { postgresDatabase, postgresStorage } from '../../src/entries/postgres.ts';
import { redisKv, redisLimits } from '../../src/entries/redis.ts';
import { s3Objects } from '../../src/entries/s3.ts';
import { sandbox } from '../../src/entries/sandbox.ts';
import { smtpMail } from '../../src/entries/smtp.ts';
import { sqliteDatabase, sqliteStorage } from '../../src/entries/sqlite.ts';
import { manualClock, memorySms } from '../../src/entries/testing.ts';
import { twilioSms } from '../../src/entries/twilio.ts';
import { platformMail } from '../../src/entries/workers.ts';
import {
  createOrchestrator,
  embeddedEngine,
  fetchHttp,
  memoryMail,
  memoryStorage,
  thirdpartyMail,
} from '../../src/index.ts';

type Factory = (options: never) => unknown;

const FACTORIES: Readonly<Record<string, readonly [factory: Factory, wrong: string, near: string]>> = {
  aiModels: [(options) => aiModels(() => ({}) as never, options), 'price', 'prices'],
  chromiumPdf: [chromiumPdf, 'concurency', 'concurrency'],
  createDashboard: [(options) => createDashboard(createOrchestrator(), options), 'readonly', 'readOnly'],
  cloudflarePdf: [cloudflarePdf, 'acountId', 'accountId'],
  embeddedEngine: [embeddedEngine, 'leaseMS', 'leaseMs'],
  embeddedPdf: [embeddedPdf, 'thread', 'threads'],
  fetchHttp: [fetchHttp, 'alow', 'allow'],
  gitComponents: [gitComponents, 'file', 'path'],
  liquidTemplates: [liquidTemplates, 'renderMS', 'renderMs'],
  manualClock: [manualClock, 'nov', 'now'],
  mcpClient: [mcpClient, 'shareSession', 'shareSessions'],
  memoryMail: [memoryMail, 'onsend', 'onSend'],
  memorySms: [memorySms, 'onsend', 'onSend'],
  memoryStorage: [memoryStorage, 'keepByte', 'keepBytes'],
  nodeHttp: [nodeHttp, 'alow', 'allow'],
  platformMail: [(options) => platformMail(undefined, options), 'alow', 'allow'],
  postgresDatabase: [postgresDatabase, 'queryTimeoutMs', 'timeout'],
  postgresStorage: [postgresStorage, 'connectionString', 'url'],
  redisKv: [redisKv, 'prefix', 'namespace'],
  redisLimits: [redisLimits, 'uri', 'url'],
  s3Objects: [s3Objects, 'endpoint', 'url'],
  sandbox: [sandbox, 'timeoutMs', 'timeout'],
  smtpMail: [smtpMail, 'hots', 'host'],
  sqliteDatabase: [sqliteDatabase, 'busyTimeoutMs', 'timeout'],
  sqliteStorage: [sqliteStorage, 'filename', 'path'],
  thirdpartyMail: [thirdpartyMail, 'apikey', 'apiKey'],
  openTelemetry: [openTelemetry, 'captures', 'capture'],
  twilioSms: [twilioSms, 'accountSID', 'accountSid'],
};

describe('an unknown option is a TypeError that names the nearest one', () => {
  it.each(Object.entries(FACTORIES))('of %s', (name, [factory, wrong, near]) => {
    const call = () => factory({ [wrong]: 1 } as never);
    expect(call).toThrow(TypeError);
    expect(call).toThrow(`${name}: \`${wrong}\` is not an option of this version; did you mean \`${near}\`?`);
  });
});
