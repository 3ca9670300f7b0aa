/**
 * The scripts that Redis runs, each as one atomic step. `KEYS` are the index of all keys, the index of expiries, and perhaps a value;
 * those of the scripts for logs are the logs.
 */

/** How long after its expiry Redis itself may delete a value, in ms. Until then, only the caller's clock decides. */
const GRACE_MS = 3_600_000;

/** `ARGV`: key, stored text, expiry (Unix ms) or an empty text. */
export const PUT = `
redis.call('SET', KEYS[3], ARGV[2])
redis.call('ZADD', KEYS[1], 0, ARGV[1])
if ARGV[3] == '' then
  redis.call('ZREM', KEYS[2], ARGV[1])
else
  redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000
  redis.call('PEXPIREAT', KEYS[3], string.format('%.0f', math.max(now, tonumber(ARGV[3])) + ${GRACE_MS}))
end
return 1`;

/** `ARGV`: key, now (Unix ms). Answers the stored text, or nothing. */
export const GET = `
local expiry = redis.call('ZSCORE', KEYS[2], ARGV[1])
if expiry and tonumber(expiry) <= tonumber(ARGV[2]) then return false end
return redis.call('GET', KEYS[3])`;

/** `ARGV`: key. Answers how many values were deleted. */
export const DELETE = `
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
return redis.call('DEL', KEYS[3])`;

/**
 * `ARGV`: prefix, the key to begin after or an empty text, limit, now (Unix ms), the beginning of the names of values. Answers the
 * keys, and where to continue: an empty text at the end. One call looks at a limited number of keys, so that Redis is not blocked.
 */
export const LIST = `
local first = '[' .. ARGV[1]
if ARGV[2] ~= '' then first = '(' .. ARGV[2] end
local last = '+'
if ARGV[1] ~= '' then last = '(' .. ARGV[1] .. '\\255' end
local limit = tonumber(ARGV[3])
local found = {}
local members = redis.call('ZRANGEBYLEX', KEYS[1], first, last, 'LIMIT', 0, 1000)
for _, key in ipairs(members) do
  if redis.call('EXISTS', ARGV[5] .. key) == 0 then
    redis.call('ZREM', KEYS[1], key)
    redis.call('ZREM', KEYS[2], key)
  else
    local expiry = redis.call('ZSCORE', KEYS[2], key)
    if not expiry or tonumber(expiry) > tonumber(ARGV[4]) then
      found[#found + 1] = key
      if #found == limit then return {found, ''} end
    end
  end
end
if #members < 1000 then return {found, ''} end
return {found, members[#members]}`;

/** `ARGV`: now (Unix ms), the beginning of the names of values. Deletes up to 1,000 expired values, and answers how many. */
export const SWEEP = `
local expired = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[1], 'LIMIT', 0, 1000)
for _, key in ipairs(expired) do
  redis.call('DEL', ARGV[2] .. key)
  redis.call('ZREM', KEYS[1], key)
  redis.call('ZREM', KEYS[2], key)
end
return #expired`;

/** Answers the texts of the logs `KEYS`, an empty text for each that is not there. */
export const READ_LOGS = `
local found = {}
for i, key in ipairs(KEYS) do found[i] = redis.call('GET', key) or '' end
return found`;

/** `ARGV`: for each log the text that was read, the new text, and for how many ms to keep it. Answers 1 if no log was changed since. */
export const REPLACE_LOGS = `
for i, key in ipairs(KEYS) do
  if (redis.call('GET', key) or '') ~= ARGV[3 * i - 2] then return 0 end
end
for i, key in ipairs(KEYS) do
  if ARGV[3 * i - 1] == '' then redis.call('DEL', key) else redis.call('SET', key, ARGV[3 * i - 1], 'PX', ARGV[3 * i]) end
end
return 1`;
