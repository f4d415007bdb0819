//! Names of users and groups. The host's own files are read at once; a directory service may take its time, so a thread
//! asks it, and whoever needs the answer waits without holding up the loop. An answer about a user is kept as long as the
//! daemon runs: it names accounts, and one user must never have two.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use crossbeam::channel::{Receiver, Sender, unbounded};
use nix::errno::Errno;
use nix::unistd::{Gid, Group as GroupEntry, Uid, User as UserEntry};

/// The group whose members may name any tenant and value.
const TRUSTED_GROUP: &str = "stint";
/// Questions to the directory service that are open at once.
const MOST_ASKED: usize = 1024;

/// A user of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Its name, or its number where it has none.
    pub name: String,
    /// Its primary group.
    pub group: Option<u32>,
}

/// A group of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    pub number: u32,
    /// Names of those listed in it.
    pub members: Vec<String>,
}

/// Why something is not known now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotKnown {
    /// The directory service was asked; [`Users::ready`] tells when to ask again.
    Asked,
    /// It failed.
    Failed(String),
}

/// What a directory service can be asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Question {
    User(u32),
    Group(String),
}

/// What it answered; `None` inside: there is no such one.
#[derive(Debug, Clone)]
pub enum Answer {
    User(Option<User>),
    Group(Option<Group>),
}

type Ask = Box<dyn Fn(&Question) -> Result<Answer, String> + Send>;

/// See the module.
#[derive(Debug)]
pub struct Users {
    /// Directory with `passwd` and `group`.
    files: PathBuf,
    users: HashMap<u32, User>,
    groups: HashMap<String, Option<Group>>,
    asked: HashSet<Question>,
    failed: HashMap<Question, String>,
    questions: Sender<Question>,
    answers: Receiver<(Question, Result<Answer, String>)>,
    /// A byte for each answer.
    ready: UnixStream,
}

impl Users {
    /// The host's own.
    pub fn of_host() -> io::Result<Users> {
        Users::with("/etc".into(), Box::new(ask_the_system))
    }

    /// With files in `files`, and `ask` in a thread for what they do not tell.
    pub fn with(files: PathBuf, ask: Ask) -> io::Result<Users> {
        let (questions, to_answer) = unbounded::<Question>();
        let (answered, answers) = unbounded();
        let (ready, mut tell) = UnixStream::pair()?;
        ready.set_nonblocking(true)?;
        // Ends with the sender of questions.
        let thread = std::thread::Builder::new().name("stint-users".into());
        thread.spawn(move || {
            for question in to_answer {
                let answer = ask(&question);
                if answered.send((question, answer)).is_err() || tell.write_all(&[0]).is_err() {
                    return;
                }
            }
        })?;
        Ok(Users {
            files,
            users: HashMap::new(),
            groups: HashMap::new(),
            asked: HashSet::new(),
            failed: HashMap::new(),
            questions,
            answers,
            ready,
        })
    }

    /// Readable when an answer came: then [`Users::take_answers`].
    pub fn ready(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }

    /// Takes in what the directory service answered.
    pub fn take_answers(&mut self) {
        let mut bytes = [0; 256];
        while matches!((&self.ready).read(&mut bytes), Ok(1..)) {}
        while let Ok((question, answer)) = self.answers.try_recv() {
            self.asked.remove(&question);
            match (question, answer) {
                (Question::User(uid), Ok(Answer::User(user))) => {
                    self.users.insert(uid, user.unwrap_or_else(|| nameless(uid)));
                }
                (Question::Group(name), Ok(Answer::Group(group))) => drop(self.groups.insert(name, group)),
                (question, Err(error)) => drop(self.failed.insert(question, error)),
                (_, Ok(_)) => {}
            }
        }
    }

    /// Whether a user of that name was seen here or stands in the host's own file. A directory service is not asked.
    pub fn is_known(&self, name: &str) -> bool {
        let file = fs::read_to_string(self.files.join("passwd")).unwrap_or_default();
        let listed = || file.lines().any(|line| line.split(':').next() == Some(name));
        self.users.values().any(|user| user.name == name) || listed()
    }

    /// Forgets what groups there are: to be called when the quota file is read anew.
    pub fn forget_groups(&mut self) {
        self.groups.clear();
    }

    /// The user `uid`.
    pub fn user(&mut self, uid: u32) -> Result<&User, NotKnown> {
        if !self.users.contains_key(&uid) {
            let user = self.lines("passwd").find_map(|line| passwd_line(&line, uid));
            match user {
                Some(user) => drop(self.users.insert(uid, user)),
                None => return Err(self.ask(Question::User(uid))),
            }
        }
        self.users.get(&uid).ok_or(NotKnown::Asked)
    }

    /// The group called `name`; `None`: there is none.
    pub fn group(&mut self, name: &str) -> Result<Option<&Group>, NotKnown> {
        if !self.groups.contains_key(name) {
            let group = self.lines("group").find_map(|line| group_line(&line, name));
            match group {
                Some(group) => drop(self.groups.insert(name.into(), Some(group))),
                None => return Err(self.ask(Question::Group(name.into()))),
            }
        }
        Ok(self.groups.get(name).and_then(Option::as_ref))
    }

    /// Name of the user `uid` for people: its number as long as the name is not known.
    pub fn name(&mut self, uid: u32) -> String {
        self.user(uid)
            .map_or_else(|_| uid.to_string(), |user| user.name.clone())
    }

    fn ask(&mut self, question: Question) -> NotKnown {
        if let Some(error) = self.failed.remove(&question) {
            return NotKnown::Failed(error);
        }
        if self.asked.len() < MOST_ASKED && self.asked.insert(question.clone()) {
            let _ = self.questions.send(question); // its thread has panicked: nobody is ever told
        }
        NotKnown::Asked
    }

    fn lines(&self, file: &str) -> impl Iterator<Item = String> + use<> {
        let text = fs::read(self.files.join(file)).unwrap_or_default();
        let lines: Vec<String> = String::from_utf8_lossy(&text)
            .lines()
            .map(str::to_owned)
            .collect();
        lines.into_iter()
    }
}

fn nameless(uid: u32) -> User {
    User {
        name: uid.to_string(),
        group: None,
    }
}

/// The user of a line of passwd(5), if it is `uid`.
fn passwd_line(line: &str, uid: u32) -> Option<User> {
    let fields: Vec<&str> = line.split(':').collect();
    let named = fields.len() == 7 && !fields[0].is_empty() && !fields[0].starts_with(['#', '+', '-']);
    (named && fields[2].parse() == Ok(uid)).then(|| User {
        name: fields[0].into(),
        group: fields[3].parse().ok(),
    })
}

/// The group of a line of group(5), if it is called `name`.
fn group_line(line: &str, name: &str) -> Option<Group> {
    let [found, _, number, members] = line.split(':').collect::<Vec<_>>()[..] else {
        return None;
    };
    let members = members.split(',').filter(|name| !name.is_empty());
    (found == name).then_some(Group {
        number: number.parse().ok()?,
        members: members.map(str::to_owned).collect(),
    })
}

/// Asks whatever nsswitch.conf(5) names. May take as long as that likes.
fn ask_the_system(question: &Question) -> Result<Answer, String> {
    // These say "there is none", too: getpwnam_r(3).
    let none = |error: &Errno| matches!(error, Errno::ENOENT | Errno::ESRCH | Errno::EBADF | Errno::EPERM);
    let told = |error: Errno| error.to_string();
    match question {
        Question::User(uid) => {
            let user = match UserEntry::from_uid(Uid::from_raw(*uid)) {
                Err(error) if none(&error) => None,
                other => other.map_err(told)?,
            };
            Ok(Answer::User(user.map(|user| User {
                name: user.name,
                group: Some(user.gid.as_raw()),
            })))
        }
        Question::Group(name) => {
            let group = match GroupEntry::from_name(name) {
                Err(error) if none(&error) => None,
                other => other.map_err(told)?,
            };
            Ok(Answer::Group(group.map(|group| Group {
                number: Gid::as_raw(group.gid),
                members: group.mem,
            })))
        }
    }
}

/// Number of the group `stint`, where the host has one. May take as long as a directory service likes: for the start.
pub fn trusted_group() -> Option<u32> {
    let text = fs::read_to_string("/etc/group").unwrap_or_default();
    let listed = text.lines().find_map(|line| group_line(line, TRUSTED_GROUP));
    listed.map(|group| group.number).or_else(|| {
        let group = GroupEntry::from_name(TRUSTED_GROUP).ok().flatten()?;
        Some(group.gid.as_raw())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};

    fn wait(users: &mut Users) {
        let mut fds = [PollFd::new(&users.ready, PollFlags::IN)];
        poll(&mut fds, None).unwrap();
        users.take_answers();
    }

    fn files() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::write(
            dir.path().join("passwd"),
            "root:x:0:0:root:/root:/bin/sh\n+nis\nalice:x:1001:100:,,,:/:/bin/sh\n",
        )
        .unwrap();
        fs::write(dir.path().join("group"), "users:x:100:\nphd:x:500:alice,bob\n").unwrap();
        dir
    }

    #[test]
    fn what_the_files_tell_is_known_at_once() {
        let dir = files();
        let never = |_: &Question| panic!("nobody is to be asked");
        let mut users = Users::with(dir.path().into(), Box::new(never)).unwrap();
        let alice = users.user(1001).unwrap().clone();
        assert_eq!((alice.name.as_str(), alice.group), ("alice", Some(100)));
        let phd = users.group("phd").unwrap().unwrap();
        assert_eq!((phd.number, phd.members.len()), (500, 2));
    }

    #[test]
    fn a_directory_service_that_takes_its_time_holds_up_nobody() {
        let dir = files();
        let (go, gate) = unbounded::<()>();
        let slow = move |question: &Question| {
            gate.recv().unwrap();
            Ok(match question {
                Question::User(1002) => Answer::User(Some(User {
                    name: "bob".into(),
                    group: Some(100),
                })),
                Question::User(_) => Answer::User(None),
                Question::Group(_) => return Err("it is down".into()),
            })
        };
        let mut users = Users::with(dir.path().into(), Box::new(slow)).unwrap();
        for _ in 0..2 {
            assert_eq!(users.user(1002), Err(NotKnown::Asked));
        }
        assert_eq!(users.name(1002), "1002", "shown by number meanwhile");
        go.send(()).unwrap();
        wait(&mut users);
        assert_eq!(users.user(1002).unwrap().name, "bob");
        assert_eq!(users.user(1003), Err(NotKnown::Asked));
        go.send(()).unwrap();
        wait(&mut users);
        assert_eq!(users.user(1003).unwrap().name, "1003", "it has no name, for good");
        assert_eq!(users.group("staff"), Err(NotKnown::Asked));
        go.send(()).unwrap();
        wait(&mut users);
        assert_eq!(users.group("staff"), Err(NotKnown::Failed("it is down".into())));
        assert_eq!(users.group("staff"), Err(NotKnown::Asked), "asked anew");
    }

    #[test]
    fn the_host_itself_is_asked() {
        assert_eq!(Users::of_host().unwrap().user(0).unwrap().name, "root");
        let answer = ask_the_system(&Question::User(4_000_000_001));
        assert!(matches!(answer, Ok(Answer::User(None))), "{answer:?}");
    }

    #[test]
    fn odd_lines_name_nobody() {
        for line in [
            "",
            "x",
            "+::::::",
            "#a:x:1:1:::",
            ":x:1:1:::",
            "a:x:one:1:::",
            "a:x:1:1::",
        ] {
            assert_eq!(passwd_line(line, 1), None, "{line}");
        }
        assert_eq!(group_line("a:x:1", "a"), None);
        assert_eq!(group_line("a:x:one:", "a"), None);
    }
}
